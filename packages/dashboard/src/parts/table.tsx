/** Tables that scroll by themselves where the page is narrow. */
import type { ComponentChildren } from "preact";
import { Scroll } from "./basics.tsx";

/** A column: its heading, and how it looks. */
export interface Column {
  title: string;
  look?: "number" | "hidden";
}

interface TableProps {
  /** What the table is, for screen readers. */
  label: string;
  columns: readonly (Column | string)[];
  /** Rows. */
  children: ComponentChildren;
}

/** A table with headings. */
export function Table({ label, columns, children }: TableProps) {
  return (
    <Scroll label={label}>
      <table class="table">
        <thead>
          <tr>
            {columns.map((column) => {
              const { title, look }: Column = typeof column === "string" ? { title: column } : column;
              return (
                <th key={title} scope="col" class={look === "number" ? "number" : undefined}>
                  {look === "hidden" ? <span class="hidden">{title}</span> : title}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  );
}
