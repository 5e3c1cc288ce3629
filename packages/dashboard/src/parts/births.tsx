/** What is chosen for machines that are made from the memory of another one. */
import { Check, Field } from "./form-dialog.tsx";

/** The fields of which `birthOf` reads the values. */
export function BirthFields({ several = false }: { several?: boolean }) {
  return (
    <>
      <NameField hint={several ? "Several get it with a number: name-1." : ""} />
      <Check name="cordoned">Cordoned: no requests until {several ? "they are" : "it is"} uncordoned</Check>
      <Check name="asleep">Asleep: not started until a request or someone wakes {several ? "them" : "it"}</Check>
    </>
  );
}

/** A name that may be left to the platform. */
export function NameField({ hint = "" }: { hint?: string }) {
  return (
    <>
      <Field label="Name" name="name" placeholder="generated" maxLength={63} />
      {hint !== "" && <p class="muted">{hint}</p>}
    </>
  );
}
