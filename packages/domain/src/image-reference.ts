/** What references of images say, as far as rights depend on it. Pure. */

/**
 * References to what is on the platform's host: files of it, or images in its Docker. Not for tokens that are limited to
 * apps. The reading of references in `images` has the same words.
 */
export const ON_HOST = /^(oci|oci-archive|docker-archive|docker-daemon):/;
