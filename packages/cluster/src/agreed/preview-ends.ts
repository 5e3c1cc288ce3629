/** The end of previews whose time is over: one host decides, and each destroys what it has. */
import type { AppRecord } from "@hibernaut/domain/machine";
import type { Cluster } from "../cluster.ts";
import { decides } from "../first-host.ts";
import { hostSilent } from "../peer-client.ts";
import type { PreviewEnds, SharedRecords } from "./shared.ts";

interface PreviewEndsOptions extends Pick<SharedRecords, "write" | "deleteApp"> {
  cluster: Pick<Cluster, "view" | "host" | "lease">;
  /** Destroys what this host has of an app. */
  empty(app: string): Promise<void>;
}

export function previewEnds({ cluster, write, deleteApp, empty }: PreviewEndsOptions): PreviewEnds {
  return {
    decides: () => decides(cluster),
    expire: (preview: AppRecord) => write(({ previews }) => previews.expire(preview)),
    async destroy({ name, createdAt }: AppRecord) {
      if (!decides(cluster)) return empty(name);
      for (const { name: host, up } of cluster.view.hosts())
        if (up === undefined) throw hostSilent(host, `it is away, and may have volumes of ${name}`);
      await deleteApp(name, () => empty(name), createdAt);
    },
  };
}
