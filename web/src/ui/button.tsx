// Buttons. A button with only an icon has a label for assistive technology and a tooltip.
import { splitProps, type JSX } from "solid-js";
import { Icon, type IconName } from "./icon";
import { tooltip } from "./tooltip";

type Props = JSX.ButtonHTMLAttributes<HTMLButtonElement> & {
  icon?: IconName | undefined;
  /** The label of a button that has only an icon. */
  label?: string | undefined;
  /** The key that does the same, for the tooltip. */
  keys?: string | undefined;
  kind?: "primary" | "danger" | "quiet" | undefined;
  small?: boolean | undefined;
};

export function Button(props: Props): JSX.Element {
  const [own, rest] = splitProps(props, ["icon", "label", "keys", "kind", "small", "class", "children", "ref"]);
  const isIcon = () => own.children === undefined;
  return (
    <button
      type="button"
      {...rest}
      ref={(element) => {
        if (own.label !== undefined || own.keys !== undefined) {
          tooltip(element, () => ({ text: own.label ?? element.textContent ?? "", keys: own.keys }));
        }
        if (typeof own.ref === "function") own.ref(element);
      }}
      class={`button ${own.kind ?? ""} ${own.small ? "small" : ""} ${isIcon() ? "icon" : ""} ${own.class ?? ""}`}
      aria-label={own.label}
    >
      {own.icon && <Icon name={own.icon} />}
      {own.children}
    </button>
  );
}
