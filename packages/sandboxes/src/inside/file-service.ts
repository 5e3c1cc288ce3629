/** The service `filesystem.Filesystem`. */
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Refusal } from "../failure.ts";
import { filesOf, type Inside } from "./inside.ts";
import { KEEPALIVE_HEADER, keptAlive } from "./keepalive.ts";
import { Filesystem } from "./protocol/files_pb.ts";

export function fileService(router: ConnectRouter, insideOf: (context: HandlerContext) => Inside): void {
  const filesFor = (context: HandlerContext) => filesOf(insideOf(context));
  const implementation: ServiceImpl<typeof Filesystem> = {
    stat: async ({ path }, context) => ({ entry: await (await filesFor(context)).stat(path) }),
    makeDir: async ({ path }, context) => ({ entry: await (await filesFor(context)).makeDirectory(path) }),
    move: async ({ source, destination }, context) => ({
      entry: await (await filesFor(context)).move(source, destination),
    }),
    async listDir({ path, depth }, context) {
      if (depth > 2 ** 16) throw new Refusal(400, "depth should be at most 65536");
      return { entries: await (await filesFor(context)).list(path, Math.max(1, depth)) };
    },
    async remove({ path }, context) {
      await (await filesFor(context)).remove(path);
      return {};
    },
    async *watchDir({ path, recursive, includeEntry }, context) {
      const signal = AbortSignal.any([insideOf(context).signal, context.signal]);
      const events = await (await filesFor(context)).watch(path, { recursive, entries: includeEntry }, signal);
      const all = async function* () {
        yield { event: { case: "start" as const, value: {} } };
        for await (const { event: value } of events) yield { event: { case: "filesystem" as const, value } };
        // The client's time is over: a watch that just ended would look as if the directory were gone.
        context.signal.throwIfAborted();
      };
      const sign = () => ({ event: { case: "keepalive" as const, value: {} } });
      yield* keptAlive(all(), context.requestHeader.get(KEEPALIVE_HEADER), sign);
    },
    async createWatcher({ path, recursive, includeEntry }, context) {
      const { watchers, view } = insideOf(context);
      const options = { recursive, entries: includeEntry };
      return { watcherId: await watchers.create(view.record.id, await filesFor(context), path, options) };
    },
    getWatcherEvents({ watcherId }, context) {
      const { watchers, view } = insideOf(context);
      return { events: watchers.take(view.record.id, watcherId) };
    },
    removeWatcher({ watcherId }, context) {
      const { watchers, view } = insideOf(context);
      watchers.remove(view.record.id, watcherId);
      return {};
    },
  };
  router.service(Filesystem, implementation);
}
