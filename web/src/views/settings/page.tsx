// A page with a title in a column.
import type { JSX } from "solid-js";

export function Page(props: { title: string; children: JSX.Element }): JSX.Element {
  return (
    <div class="page" tabindex={0} role="group" aria-label={props.title}>
      <div class="page-inner">
        <h1>{props.title}</h1>
        {props.children}
      </div>
    </div>
  );
}
