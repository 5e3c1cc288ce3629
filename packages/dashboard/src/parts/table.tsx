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
            {columns.map((column) => (
              <Heading key={titleOf(column)} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  );
}

function titleOf(column: Column | string): string {
  return typeof column === "string" ? column : column.title;
}

function Heading({ column }: { column: Column | string }) {
  const look = typeof column === "string" ? undefined : column.look;
  return (
    <th scope="col" class={look === "number" ? "number" : undefined}>
      {look === "hidden" ? <span class="hidden">{titleOf(column)}</span> : titleOf(column)}
    </th>
  );
}
