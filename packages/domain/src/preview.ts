/** Previews: apps that show for a while what another app would be, and then go. Pure rules. */
import { HibernautError } from "./errors.ts";
import { isValidName, NAME_RULE } from "./naming.ts";

/** What makes an app a preview of another one, the production. */
export interface Preview {
  /** The name of its production. */
  of: string;
  /** When that was created, RFC 3339: a later app of the same name has nothing to do with the preview. */
  ofCreatedAt: string;
  /** When its time is over, RFC 3339. Each deploy renews it. */
  expiresAt: string;
  /** It was decided that its time is over: it is being destroyed, and nothing renews it any more. */
  expired?: true;
}

/** The part of an app's record that the rules look at. */
interface AppLike {
  name: string;
  createdAt: string;
  preview?: Preview;
}

/** Between the name of a preview and that of its production. A preview's own name has none, so each app's name is read in one way. */
const SEPARATOR = "--";

/** Hyphens in the third and fourth place are for names like `xn--...`, which browsers show as another name (RFC 5890). */
const RESERVED_LENGTH = 2;

/** How long an app's name may be, because it is a label of a hostname. */
const MOST_LETTERS = 63;

/** Returns the name of the app that is the preview. Throws `invalid_argument` when there can be none of that name. */
export function previewAppName(name: string, of: string): string {
  const refuse = (why: string) =>
    new HibernautError("invalid_argument", `\`${name.slice(0, 80)}\` is not a valid name for a preview: ${why}`, {
      field: "preview",
      value: name.slice(0, 80),
    });
  if (!isValidName(name)) throw refuse(`it ${NAME_RULE}. Use a name such as pr-12.`);
  if (name.includes(SEPARATOR)) throw refuse(`it contains \`${SEPARATOR}\`. Use single hyphens, as in pr-12.`);
  if (name.length === RESERVED_LENGTH)
    throw refuse("names of two characters are reserved by the rules for hostnames. Use a longer one, such as pr-12.");
  const full = name + SEPARATOR + of;
  if (full.length > MOST_LETTERS)
    throw refuse(`\`${full}\` has ${full.length} characters, and a hostname takes ${MOST_LETTERS}. Use a shorter one.`);
  return full;
}

/** Returns the name that the preview has among those of its production. */
export function previewName({ name, preview }: { name: string; preview: Preview }): string {
  return name.slice(0, -(SEPARATOR + preview.of).length);
}

/** Whether an app is a preview of the other one, and not of an earlier app of its name. */
export function isPreviewOf({ preview }: AppLike, production: AppLike): boolean {
  return preview?.of === production.name && preview.ofCreatedAt === production.createdAt;
}

/** Since when each preview was found to be past its time, by name. */
export type Overdue = ReadonlyMap<string, { expiresAt: string; since: number }>;

/**
 * Looks which previews are past their time. A preview is due once looks have found that for the whole grace, so a clock
 * that is wrong for a while, or a platform that has just started, destroys nothing.
 *
 * @param now the wall clock, in milliseconds since 1970
 * @param steady a clock that nobody sets, in milliseconds
 */
export function lookForExpired(
  apps: readonly AppLike[],
  seen: Overdue,
  { now, steady, graceMs }: { now: number; steady: number; graceMs: number },
): { overdue: Overdue; due: string[] } {
  const overdue = new Map(
    apps.flatMap(({ name, preview }) => {
      if (preview === undefined || preview.expired === true || !(Date.parse(preview.expiresAt) <= now)) return [];
      const before = seen.get(name);
      const { expiresAt } = preview;
      return [[name, before?.expiresAt === expiresAt ? before : { expiresAt, since: steady }] as const];
    }),
  );
  return { overdue, due: [...overdue].filter(([, { since }]) => steady - since >= graceMs).map(([name]) => name) };
}
