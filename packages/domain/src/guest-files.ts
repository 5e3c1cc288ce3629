/** Files that the platform writes into a machine before its app starts: the key `files` of a configuration. */
import { BASE64 } from "@hibernaut/lib/base64";
import { type Static, Type } from "typebox";
import { HibernautError } from "./errors.ts";
import { filePathRefusal } from "./guest-paths.ts";

/** Every reply about the machine contains them, and its record too: more belongs in the image or on a volume. */
export const MAX_FILES_BYTES = 256 * 1024;
/** A handful is usual; the agent accepts as many (CONFIG_MAX_FILES in config.h). */
export const MAX_FILES = 32;
/** Of a file without a secret, and of one from a secret, which only the app's user may read. */
const PLAIN_MODE = 0o644;
const SECRET_MODE = 0o600;
/** Three bytes are four characters; line breaks take the rest. */
const MAX_ENCODED = 2 * MAX_FILES_BYTES;

/** A file to write, as clients send and receive it. */
export const FileConfig = Type.Object(
  {
    guest_path: Type.String({ maxLength: 1024, description: "Absolute path of the file in the machine." }),
    raw_value: Type.Optional(
      Type.String({ maxLength: MAX_ENCODED, description: "The file's content, in base64. Or send `secret_name`." }),
    ),
    secret_name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "Name of the app's secret whose value is the file's content, in base64.",
      }),
    ),
    mode: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 0o777,
        description: "The file's permissions as a number, such as 493 for 0755. Default: 0644, or 0600 for a secret.",
      }),
    ),
  },
  { additionalProperties: false, title: "FileConfig" },
);

export type FileConfig = Static<typeof FileConfig>;

/** A file with its content. It belongs to the user of the app. */
export interface GuestFile {
  path: string;
  /** Permissions. */
  mode: number;
  content: Buffer;
}

/** Why the files cannot be written into a machine, with the field that is wrong; undefined if they can. */
export function filesRefusal(files: readonly FileConfig[]): { field: string; message: string } | undefined {
  let bytes = 0;
  for (const [index, file] of files.entries()) {
    const field = `files[${index}]`;
    const message = fileRefusal(file, files.slice(0, index));
    if (message !== undefined) return { field, message };
    bytes += decoded(file.raw_value ?? "")?.length ?? 0;
  }
  if (bytes <= MAX_FILES_BYTES) return undefined;
  const message = `The files have ${bytes} bytes in total; a machine's files may have up to ${MAX_FILES_BYTES}. Put larger ones into the image.`;
  return { field: "files", message };
}

function fileRefusal(
  { guest_path: path, raw_value: raw, secret_name: secret }: FileConfig,
  before: readonly FileConfig[],
): string | undefined {
  const shown = path.slice(0, 100);
  const refusal = filePathRefusal(
    path,
    before.map((other) => other.guest_path),
  );
  if (refusal !== undefined) return refusal;
  if ((raw === undefined) === (secret === undefined))
    return `The file ${shown} needs either \`raw_value\` or \`secret_name\`. Send one of them.`;
  if (raw !== undefined && decoded(raw) === undefined)
    return `The content of ${shown} is not valid base64. Encode it, as \`base64 < file\` does.`;
  return undefined;
}

/** The files of a machine with their contents. Throws `failed_precondition` for a secret that is missing or not base64. */
export function guestFiles(
  files: readonly FileConfig[] | undefined,
  app: string,
  secrets: Readonly<Record<string, string>>,
): GuestFile[] {
  return (files ?? []).map(({ guest_path: path, raw_value: raw, secret_name: secret, mode }) => {
    if (secret === undefined) return { path, mode: mode ?? PLAIN_MODE, content: decoded(raw ?? "") ?? Buffer.alloc(0) };
    const refuse = (what: string) => {
      const advice = `hibernaut secrets set ${secret}="$(base64 < file)" --app ${app}`;
      return new HibernautError(
        "failed_precondition",
        `The file ${path} cannot be written: ${what}. Run \`${advice}\`.`,
      );
    };
    const value = Object.hasOwn(secrets, secret) ? secrets[secret] : undefined;
    if (value === undefined) throw refuse(`app ${app} has no secret ${secret}`);
    const content = decoded(value);
    if (content === undefined) throw refuse(`the secret ${secret} of app ${app} is not valid base64`);
    return { path, mode: mode ?? SECRET_MODE, content };
  });
}

/** The bytes of a text in base64, which may have line breaks; undefined if it is not base64. */
function decoded(text: string): Buffer | undefined {
  const plain = text.replaceAll(/[\r\n]/g, "");
  return BASE64.test(plain) ? Buffer.from(plain, "base64") : undefined;
}
