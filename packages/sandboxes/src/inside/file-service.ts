/** The service `filesystem.Filesystem`. */
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Refusal } from "../failure.ts";
import { answering, streaming } from "./connect-error.ts";
import { filesOf, type Inside } from "./inside.ts";
import { KEEPALIVE_HEADER, keptAlive } from "./keepalive.ts";
import { Filesystem } from "./protocol/files_pb.js";

export function fileService(router: ConnectRouter, insideOf: (context: HandlerContext) => Inside): void {
  const filesFor = (context: HandlerContext) => filesOf(insideOf(context));
  const implementation: ServiceImpl<typeof Filesystem> = {
    stat: ({ path }, context) => answering(async () => ({ entry: await (await filesFor(context)).stat(path) })),
    makeDir: ({ path }, context) =>
      answering(async () => ({ entry: await (await filesFor(context)).makeDirectory(path) })),
    move: ({ source, destination }, context) =>
      answering(async () => ({ entry: await (await filesFor(context)).move(source, destination) })),
    listDir: ({ path, depth }, context) =>
      answering(async () => {
        if (depth > 2 ** 16) throw new Refusal(400, "depth should be at most 65536");
        return { entries: await (await filesFor(context)).list(path, Math.max(1, depth)) };
      }),
    remove: ({ path }, context) =>
      answering(async () => {
        await (await filesFor(context)).remove(path);
        return {};
      }),
    watchDir: ({ path, recursive, includeEntry }, context) =>
      streaming(async function* () {
        const options = { recursive, entries: includeEntry };
        const events = await (await filesFor(context)).watch(path, options);
        const all = async function* () {
          yield { event: { case: "start" as const, value: {} } };
          for await (const { event: value } of events) yield { event: { case: "filesystem" as const, value } };
        };
        const sign = () => ({ event: { case: "keepalive" as const, value: {} } });
        yield* keptAlive(all(), context.requestHeader.get(KEEPALIVE_HEADER), sign);
      }),
    createWatcher: ({ path, recursive, includeEntry }, context) =>
      answering(async () => {
        const { watchers, view } = insideOf(context);
        const options = { recursive, entries: includeEntry };
        return { watcherId: await watchers.create(view.record.id, await filesFor(context), path, options) };
      }),
    getWatcherEvents: ({ watcherId }, context) =>
      answering(async () => {
        const { watchers, view } = insideOf(context);
        return { events: watchers.take(view.record.id, watcherId) };
      }),
    removeWatcher: ({ watcherId }, context) =>
      answering(async () => {
        const { watchers, view } = insideOf(context);
        watchers.remove(view.record.id, watcherId);
        return {};
      }),
  };
  router.service(Filesystem, implementation);
}
