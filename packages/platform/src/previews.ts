/** Begins to destroy previews whose time is over. */

import type { OpenedShared } from "@hibernaut/api/cluster/open";
import type { AppRecord } from "@hibernaut/domain/machine";
import { type Logger, PreviewExpiry, type Resources } from "@hibernaut/machines";

interface ExpirePreviewsOptions {
  resources: Pick<Resources, "apps" | "previews">;
  /** Undefined on a host alone. */
  shared: OpenedShared | undefined;
  settings: { previewGraceMs: number };
  log: Logger;
}

/** Call it once the machines are recovered. Returns a function that ends it. */
export function expirePreviews({ resources, shared, settings, log }: ExpirePreviewsOptions): () => void {
  const { apps, previews } = resources;
  const alone = {
    decides: () => true,
    expire: async (preview: AppRecord) => previews.expire(preview),
    destroy: ({ name }: AppRecord) => apps.delete(name, { force: true }),
  };
  const ends = shared?.api.shared.previewEnds ?? alone;
  return new PreviewExpiry({ ...ends, list: () => apps.list(), graceMs: settings.previewGraceMs, log }).start();
}
