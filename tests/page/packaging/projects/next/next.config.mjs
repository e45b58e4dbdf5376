/** The packages are in a folder above this one, as in a repository of several projects. */
const root = process.env.PACKAGING_ROOT;

export default { turbopack: { root }, outputFileTracingRoot: root };
