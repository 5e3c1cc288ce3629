/** What words for machines mean in a request that several hosts answer. */
import type { Owned } from "@hibernaut/cluster";
import { findNamed } from "@hibernaut/domain/naming";
import type { ApiCluster } from "../deps.ts";

type Known = Pick<ApiCluster, "shared" | "view">;

/** Returns a machine of any host. Undefined for one that the directory does not have, such as a destroyed one. */
export async function namedMachine(app: string, word: string, { shared, view }: Known): Promise<Owned | undefined> {
  const find = () => findNamed(word, view.machines(app), { noun: "machine" });
  const found = find();
  if (found !== undefined) return found;
  // It may have been created through another host a moment ago.
  await shared.catchUp();
  return find();
}

/** Returns the words without those for machines of other hosts, which answer for them. */
export async function ownWords(app: string, words: readonly string[], known: Known): Promise<string[]> {
  const found = await Promise.all(words.map((word) => namedMachine(app, word, known)));
  return words.filter((_word, index) => (found[index]?.host ?? known.shared.host) === known.shared.host);
}
