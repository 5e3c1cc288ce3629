/** `/v1/apps/{app_name}/previews`: apps that show for a while what the app would be. */
import { HibernautError } from "@hibernaut/domain/errors";
import { PREVIEW_TTL_S } from "@hibernaut/domain/limits";
import { Type } from "typebox";
import { requireUnlimited } from "../access.ts";
import { deleteApp } from "../app-deletion.ts";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, Ok } from "../schemas.ts";
import { AppParams, AppReply, aliases, wakes } from "./apps.schemas.ts";
import { type AppDeps, appWiring } from "./apps.ts";

const route = routesOf("apps");

const PreviewParams = Type.Object(
  {
    ...AppParams.properties,
    preview: Type.String({ description: "What the preview is called, such as `pr-12`." }),
  },
  closed,
);

const PreviewList = Type.Object({ previews: Type.Array(AppReply) }, closed);

const PreviewBody = Type.Object(
  {
    ttl: Type.Optional(
      Type.Integer({
        ...PREVIEW_TTL_S,
        description: "Seconds from now for which it is kept. Default: the platform's setting HIBERNAUT_PREVIEW_TTL.",
      }),
    ),
    copy_secrets: Type.Optional(
      Type.Boolean({
        description:
          "Give it the secrets of the app, with their values: everyone who may change the preview can then read them. Needs a token for all apps. Default: false.",
      }),
    ),
    network: Type.Optional(
      Type.Boolean({
        description:
          "Whether it shares a network with the previews of the same name of the apps in its production's network, and with nothing else. It is called `<preview>--<network>`. Decided when the preview is made. Default: as it is, at first false.",
      }),
    ),
    aliases,
    wakes,
  },
  { ...closed, title: "PutPreviewRequest" },
);

/** Registers the routes of previews. */
export function previewRoutes(app: Api, deps: AppDeps & Pick<ApiDeps, "previews" | "previewTtlS"> & Writes): void {
  const { previews, write, previewTtlS } = deps;
  const wire = appWiring(deps);
  const path = "/v1/apps/:app_name/previews";

  app.get(
    path,
    route(
      "List the previews of an app",
      { scope: "read", limited: "previews" },
      { params: AppParams, reply: PreviewList },
    ),
    async ({ token, params }) => ({ previews: previews.list(params.app_name).map((one) => wire(one, token)) }),
  );

  app.put(
    `${path}/:preview`,
    route(
      "Make a preview of an app, or renew it",
      { scope: "deploy", limited: "previews", audited: ["ttl", "copy_secrets", "network", "aliases", "wakes"] },
      { params: PreviewParams, optionalBody: PreviewBody, reply: AppReply },
    ),
    async ({ token, params: { app_name: of, preview: name }, body }) => {
      const { ttl = previewTtlS, copy_secrets: copySecrets = false, network = false, ...place } = body;
      if (copySecrets) requireUnlimited(token, "deploy");
      if (!network && Object.keys(place).length > 0)
        throw new HibernautError("invalid_argument", "`aliases` and `wakes` are for a network. Add `network: true`.", {
          field: "network",
        });
      const expiresAt = new Date(Date.now() + ttl * 1000).toISOString();
      const made = await write((shared) => {
        const preview = shared.previews.put(of, { name, expiresAt, ...(network && { place }) });
        if (copySecrets) shared.secrets.copy(of, preview.name);
        return preview;
      });
      return wire(made, token);
    },
  );

  app.delete(
    `${path}/:preview`,
    route(
      "Destroy a preview with its machines and volumes",
      { scope: "deploy", limited: "previews" },
      { params: PreviewParams, reply: Ok },
    ),
    async (request) => {
      const { name, createdAt } = previews.get(request.params.app_name, request.params.preview);
      await deleteApp(request, { name, createdAt, force: true }, deps);
      return { ok: true as const };
    },
  );
}
