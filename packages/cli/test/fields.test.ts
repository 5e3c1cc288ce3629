/** What a field's description promises: an option and a key of the app file set it, where it says. */
import { type Field, type Fields, keysOf, MACHINE_FIELDS, SERVICE_FIELDS, valueAt } from "@hibernaut/domain/fields";
import { describe, expect, test } from "vitest";
import { machineConfigs } from "../src/appfile/machine-configs.ts";
import { readAppFile } from "../src/appfile/read.ts";
import { optionName, withFieldOptions } from "../src/field-options.ts";

/** A value other than the default, as a configuration has it. */
function sample(field: Field): string | number | boolean {
  if (field.kind === "boolean") return field.default === "false";
  if (field.kind === "choice") return field.choices.find((choice) => choice !== field.default) ?? "";
  return field.kind === "text" ? "SIGINT" : field.minimum + 1;
}

describe.each([
  ["a machine", MACHINE_FIELDS, (key: string) => key, (file: string) => configOf(file)],
  [
    "a service",
    SERVICE_FIELDS,
    (key: string) => `[http_service]\n${key}`,
    (file: string) => configOf(file)?.services?.[0],
  ],
] as const)("fields of %s", (_, fields: Fields, inTable, read) => {
  test.each(Object.entries(fields))("%s has its option", (path, field) => {
    const name = optionName(path, field);
    const value = sample(field);
    const given = field.kind === "boolean" ? (value === true ? "on" : "off") : value;
    const camel = name.replace(/-(\w)/g, (_hyphen, letter: string) => letter.toUpperCase());
    expect(valueAt(withFieldOptions({}, fields, { [camel]: given }), path)).toBe(value);
  });

  test.each(keysOf(fields))("%s is %s in an app file", (path, key, field) => {
    const config = read(inTable(`${key} = ${JSON.stringify(sample(field))}`));
    expect(valueAt(config ?? {}, path)).toBe(sample(field));
  });
});

test("fields of a table have names of their own: options and forms use these alone", () => {
  const names = [MACHINE_FIELDS, SERVICE_FIELDS].flatMap((fields: Fields) =>
    Object.entries(fields).map(([path, field]) => optionName(path, field)),
  );
  expect(new Set(names).size).toBe(names.length);
});

function configOf(text: string) {
  const { file, findings } = readAppFile(text);
  expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
  return file && machineConfigs(file, { image: "app:1" }).get("app")?.config;
}
