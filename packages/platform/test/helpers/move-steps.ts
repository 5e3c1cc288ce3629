/** The steps of a move, so that a host can be killed before and after each. */
import { never } from "@hibernaut/lib/async";
import type { MoveOptions } from "../../../cluster/src/moves/source.ts";
import { newClusterWorld, type TestHost } from "./cluster-world.ts";
import { Mortality } from "./mortal.ts";

type Who = "a" | "b";

/** Moves a machine that `prepare` makes on host a to host b, and returns what either host did for that, in its order. */
export async function stepsOfMove(
  prepare: (host: TestHost) => Promise<{ id: string }>,
  options: Omit<MoveOptions, "to">,
): Promise<{ who: Who; name: string; passing: number; when: "before" | "after" }[]> {
  const rehearse = async (who: Who) => {
    const mortality = new Mortality();
    const world = await newClusterWorld(["a", "b"]);
    const { id } = await prepare(world.host("a"));
    await world.host(who).restart({ mortality });
    const before = mortality.steps.length;
    await world.host("a").moves.source.move(id, { to: "b", ...options }, never());
    const names = mortality.steps.slice(before);
    await world.dispose();
    return names.map((name, index) => ({
      ...{ who, name },
      passing: names.slice(0, index).filter((other) => other === name).length,
    }));
  };
  return [...(await rehearse("a")), ...(await rehearse("b"))].flatMap((step) => [
    { ...step, when: "before" as const },
    { ...step, when: "after" as const },
  ]);
}
