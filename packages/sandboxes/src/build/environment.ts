/** Variables that a step of a build sets. */
import { Readable } from "node:stream";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import { Refusal } from "../failure.ts";
import { Files } from "../inside/files.ts";
import { MOST_ENV_BYTES } from "../life/limits.ts";
import { expanded, variablesIn } from "./expand.ts";
import type { BuildMachine } from "./machine.ts";

/** What shells of a login read after they have set their path. */
const PATH_FILE = "/etc/profile.d/zz-template-path.sh";

/**
 * Returns the variables of a step, with what others have that they name: those of steps before, and those of the machine. Sees
 * to it that a search path counts.
 */
export async function environmentOf(
  env: Record<string, string>,
  now: ProgramDefaults,
  machine: BuildMachine,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const known = new Map(Object.entries(now.env ?? {}));
  const unknown = variablesIn(Object.values(env)).filter((name) => !known.has(name));
  const values = await machine.environment(unknown, signal);
  for (const [index, name] of unknown.entries()) known.set(name, values[index] ?? "");
  const tooLong = new Refusal(400, `The variables of a template have at most ${MOST_ENV_BYTES} bytes.`);
  let most = MOST_ENV_BYTES;
  const own = Object.entries(env).map(([name, value]) => {
    const whole = expanded(value, known, { most, tooLong });
    most -= whole.length;
    return [name, whole] as const;
  });
  const { PATH: path } = Object.fromEntries(own);
  if (path !== undefined) {
    // Shells of a login, which programs are started by, begin with the system's.
    const files = new Files(machine.guest, { user: "root", signal });
    await files.write(PATH_FILE, Readable.from([`export PATH='${path.replaceAll("'", "'\\''")}'\n`]));
  }
  return Object.fromEntries(own);
}
