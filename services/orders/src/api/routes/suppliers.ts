/** Suppliers: create several, change one. */
import type { Storage } from "../../storage.ts";
import type { Api } from "../deps.ts";
import { noSuch } from "../problems.ts";
import { IdParams, NewSuppliers, NoQuery, replies, SupplierChanges, SupplierList, SupplierReply } from "../schemas.ts";

const tags = ["suppliers"];

/** `POST /suppliers` and `PATCH /suppliers/:id`. */
export function supplierRoutes(app: Api, storage: Storage): void {
  app.post(
    "/suppliers",
    {
      schema: {
        tags,
        summary: "Create suppliers, all or none",
        querystring: NoQuery,
        body: NewSuppliers,
        response: replies(201, SupplierList),
      },
    },
    async (request, reply) => reply.code(201).send(await storage.createSuppliers(request.body)),
  );

  app.patch(
    "/suppliers/:id",
    {
      schema: {
        tags,
        summary: "Change the location of a supplier",
        params: IdParams,
        querystring: NoQuery,
        body: SupplierChanges,
        response: replies(200, SupplierReply),
      },
    },
    async ({ params: { id }, body }) => {
      const supplier = await storage.updateSupplier(id, body);
      if (!supplier) throw noSuch("supplier", id);
      return supplier;
    },
  );
}
