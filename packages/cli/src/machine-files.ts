/** The options of `machine create`, `run` and `update` that name files to write into the machine. */
import { readFileSync } from "node:fs";
import type { FileConfig } from "@hibernaut/client";
import type { Option, OptionValues } from "./command.ts";
import { UsageError } from "./failure.ts";

/** As Fly's command names them. */
export const FILE_OPTIONS = [
  {
    flags: "--file-local <path=file>",
    description: "write a local file to this path in the machine; nothing after = removes it; may repeat",
    repeats: true,
  },
  {
    flags: "--file-literal <path=text>",
    description: "write this text to a path in the machine; may repeat",
    repeats: true,
  },
  {
    flags: "--file-secret <path=NAME>",
    description: "write a secret, which is in base64, to a path in the machine; may repeat",
    repeats: true,
  },
] as const satisfies readonly Option[];

/** The files with those of the options, which replace the ones at the same paths. Undefined when there are none. */
export function withFileOptions(
  before: FileConfig[] | undefined,
  { fileLocal = [], fileLiteral = [], fileSecret = [] }: OptionValues<typeof FILE_OPTIONS>,
): FileConfig[] | undefined {
  const given = [
    ...fileLocal
      .map((text) => split("--file-local", text))
      .map(([path, file]) => [path, localFile(path, file)] as const),
    ...fileLiteral
      .map((text) => split("--file-literal", text))
      .map(([path, text]) => [path, { guest_path: path, raw_value: Buffer.from(text).toString("base64") }] as const),
    ...fileSecret
      .map((text) => split("--file-secret", text))
      .map(([path, name]) => [path, secretFile(path, name)] as const),
  ];
  if (given.length === 0) return before;
  const files = new Map<string, FileConfig | undefined>((before ?? []).map((file) => [file.guest_path, file]));
  for (const [path, file] of given) files.set(path, file);
  return [...files.values()].filter((file) => file !== undefined);
}

function split(flag: string, text: string): [path: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1 || !text.startsWith("/"))
    throw new UsageError(`${flag} takes /path/in/machine=value, as in /etc/app.conf=app.conf, not \`${text}\`.`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function localFile(path: string, file: string): FileConfig | undefined {
  if (file === "") return undefined;
  try {
    return { guest_path: path, raw_value: readFileSync(file).toString("base64") };
  } catch (error) {
    throw new UsageError(`--file-local: ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function secretFile(path: string, name: string): FileConfig {
  if (name === "") throw new UsageError(`--file-secret takes the name of a secret, as in ${path}=TLS_KEY.`);
  return { guest_path: path, secret_name: name };
}
