/** `GET /status/<app>`, without a token: the public page of an app that has one. */
import type { JudgedMachine } from "@hibernaut/domain/app-status";
import type { Api, ApiDeps } from "../deps.ts";
import { sendNotFound } from "../errors.ts";
import { STATUS_PAGE_AGE_S, STATUS_PAGE_POLICY, statusPage } from "../status-page.ts";

interface StatusDeps extends Pick<ApiDeps, "apps"> {
  /** An app's machines on other hosts. Absent on a host alone. */
  elsewhere: ((app: string) => JudgedMachine[]) | undefined;
}

/** Registers the route. An app without a page is answered like one that does not exist. */
export function statusRoute(app: Api, { apps, elsewhere }: StatusDeps): void {
  app.get<{ Params: { app_name: string } }>("/status/:app_name", { schema: { hide: true } }, async (request, reply) => {
    const { app_name: name } = request.params;
    const status = apps.publicStatus(name, elsewhere);
    if (status === undefined) return sendNotFound(request, reply);
    return reply
      .headers({
        "content-security-policy": STATUS_PAGE_POLICY,
        "cache-control": `public, max-age=${STATUS_PAGE_AGE_S}`,
      })
      .type("text/html; charset=utf-8")
      .send(statusPage(name, status));
  });
}
