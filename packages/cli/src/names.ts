/** The rule for names of apps: the platform's own, so that the CLI and the API never disagree. */
export { isValidName, NAME_RULE } from "@hibernaut/domain/naming";
