// Builds elements. Texts become text nodes, so no text is ever parsed as HTML.

type Child = Node | string | null | undefined | false

export interface Attributes {
  class?: string
  title?: string
  type?: string
  role?: string
  label?: string
  hidden?: boolean
  disabled?: boolean
  click?: (event: Event) => void
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  if (attributes.class !== undefined) element.className = attributes.class
  if (attributes.title !== undefined) element.title = attributes.title
  if (attributes.type !== undefined) element.setAttribute("type", attributes.type)
  if (attributes.role !== undefined) element.setAttribute("role", attributes.role)
  if (attributes.label !== undefined) element.setAttribute("aria-label", attributes.label)
  if (attributes.hidden === true) element.hidden = true
  if (attributes.disabled === true) element.setAttribute("disabled", "")
  if (attributes.click !== undefined) element.addEventListener("click", attributes.click)
  element.append(
    ...children.filter((child): child is Node | string => typeof child === "string" || child instanceof Node),
  )
  return element
}

export function button(label: string, click: () => void, className = "button"): HTMLButtonElement {
  return h("button", { class: className, type: "button", click }, label)
}

export function iconButton(
  name: IconName,
  label: string,
  click: () => void,
  className = "icon-button",
): HTMLButtonElement {
  return h("button", { class: className, type: "button", title: label, label, click }, icon(name))
}

const SVG = "http://www.w3.org/2000/svg"

/** Icons as strokes in a square of 16 units. */
const PATHS = {
  send: "M8 13V3.5M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  plus: "M8 3v10M3 8h10",
  check: "M3 8.5 6.5 12 13 4.5",
  close: "M4 4l8 8M12 4l-8 8",
  chevron: "M6 4l4 4-4 4",
  file: "M4 2.5h5L12.5 6v7.5h-8.5zM9 2.5V6h3.5",
  terminal: "M2.5 3.5h11v9h-11zM5 6.5l2 1.5-2 1.5M8.5 10H11",
  pencil: "M3 13l.7-3L11 2.700l2.300 2.300L6 12.300zM9.500 4.200l2.300 2.300",
  globe:
    "M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 1 0 0-11zM2.500 8h11M8 2.500c-4 3.500-4 7.500 0 11c4-3.500 " +
    "4-7.500 0-11z",
  search: "M7 3a4 4 0 1 0 0 8a4 4 0 1 0 0-8zM10 10l3.500 3.500",
  gear:
    "M8 5.500a2.500 2.500 0 1 0 0 5a2.500 2.500 0 1 0 0-5zM8 2v2M8 12v2M2 8h2M12 8h2" +
    "M3.800 3.800l1.400 1.400M10.800 10.800l1.400 1.400M12.200 3.800l-1.400 1.400M5.200 10.800l-1.400 1.400",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  warning: "M8 2.500 14 13.500H2zM8 6.500v3.500M8 11.800v.2",
} as const

export type IconName = keyof typeof PATHS

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg")
  svg.setAttribute("viewBox", "0 0 16 16")
  svg.setAttribute("class", `icon icon-${name}`)
  svg.setAttribute("aria-hidden", "true")
  const path = document.createElementNS(SVG, "path")
  path.setAttribute("d", PATHS[name])
  svg.append(path)
  return svg
}
