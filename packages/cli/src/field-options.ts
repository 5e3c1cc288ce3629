/** Options of commands for the fields of a configuration that hold one value, made from their descriptions. */
import { type Field, type Fields, lastName, type ValueOf, withValueAt } from "@hibernaut/domain/fields";
import type { Option } from "./command.ts";

/** What options of these fields hold, by the names that the parser gives them: `--keep-warm` is `keepWarm`. */
export type FieldOptions<F extends Fields> = {
  [Path in keyof F as OptionName<Path & string, F[Path]>]?: F[Path] extends { kind: "boolean" }
    ? "on" | "off"
    : ValueOf<F[Path]>;
};
type OptionName<Path extends string, F extends Field> = F extends { option: infer Own extends string }
  ? Camel<Own>
  : Camel<LastName<Path>>;
type LastName<Path extends string> = Path extends `${string}.${infer Rest}` ? LastName<Rest> : Path;
type Camel<Name extends string> = Name extends `${infer Head}${"-" | "_"}${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;

/** The options for these fields, in their order. */
export function fieldOptions(fields: Fields): Option[] {
  return named(fields).map(([name, , field]) => optionOf(name, field));
}

/** The fields of these that the options give, as a user writes them: `--keep-warm`. */
export function givenFields(fields: Fields, options: object): string[] {
  return named(fields)
    .filter(([name]) => valueIn(options, name) !== undefined)
    .map(([name]) => `--${name}`);
}

/** A copy with the values that options give for these fields. */
export function withFieldOptions<T extends object>(before: T, fields: Fields, options: object): T {
  let after = before;
  for (const [name, path, { kind }] of named(fields)) {
    const value = valueIn(options, name);
    if (value !== undefined) after = withValueAt(after, path, kind === "boolean" ? value === "on" : value);
  }
  return after;
}

function named(fields: Fields): [name: string, path: string, field: Field][] {
  return Object.entries(fields).map(([path, field]) => [optionName(path, field), path, field]);
}

/** The name of a field's option, without its hyphens at the front. */
export function optionName(path: string, { option = lastName(path).replaceAll("_", "-") }: Field): string {
  return option;
}

function valueIn(options: object, name: string): unknown {
  const key = name.replace(/-(\w)/g, (_hyphen, letter: string) => letter.toUpperCase());
  return (options as Record<string, unknown>)[key];
}

function optionOf(name: string, field: Field): Option {
  const description = helpOf(field.description);
  switch (field.kind) {
    case "boolean":
      return { flags: `--${name} <on|off>`, description, choices: ["on", "off"] };
    case "choice":
      return { flags: `--${name} <what>`, description, choices: field.choices };
    case "text":
      return { flags: `--${name} <name>`, description };
    default: {
      const { minimum, maximum } = field;
      const { value, forms, ...unit } = NUMBERS[field.kind];
      return { flags: `--${name} <${value}>`, description: description + forms, minimum, maximum, ...unit };
    }
  }
}

const NUMBERS: Record<"count" | "seconds" | "mb", { value: string; forms: string } & Pick<Option, "unit">> = {
  count: { value: "count", forms: "" },
  seconds: { value: "time", forms: ", in seconds or as in 30s or 5m", unit: "seconds" },
  mb: { value: "size", forms: " or as in 512mb or 1gb", unit: "mb" },
};

/** The first sentence as help writes it: without a capital letter and a full stop. */
function helpOf(description: string): string {
  const [sentence = ""] = description.split(/\.(?:\s|$)/, 1);
  const isName = /^[A-Z]{2}/.test(sentence);
  return isName ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
