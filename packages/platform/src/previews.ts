/** Begins to destroy previews whose time is over. */

import type { PreviewEnds } from "@hibernaut/cluster";
import type { AppRecord } from "@hibernaut/domain/machine";
import { type Logger, PreviewExpiry, type Resources } from "@hibernaut/machines";

interface ExpirePreviewsOptions {
  resources: Pick<Resources, "apps" | "previews">;
  /** How the hosts of a cluster do it. Undefined on a host alone. */
  ends: PreviewEnds | undefined;
  settings: { previewGraceMs: number };
  log: Logger;
}

/** Call it once the machines are recovered. Returns a function that ends it. */
export function expirePreviews({ resources, ends, settings, log }: ExpirePreviewsOptions): () => void {
  const { apps, previews } = resources;
  const alone = {
    decides: () => true,
    expire: async (preview: AppRecord) => previews.expire(preview),
    destroy: ({ name }: AppRecord) => apps.delete(name, { force: true }),
  };
  return new PreviewExpiry({
    ...(ends ?? alone),
    list: () => apps.list(),
    graceMs: settings.previewGraceMs,
    log,
  }).start();
}
