# The command line of Rouse, and with `serve`, the default, one node. Plain Dockerfile syntax only: docker-compose 1.29 builds without BuildKit.

FROM node:22-bookworm-slim AS tools
WORKDIR /rouse
# For networks that have a registry of their own, or that inspect TLS. Both end with this stage and those built on it.
ARG NPM_CONFIG_REGISTRY
ARG EXTRA_CA_CERTIFICATES
ENV CI=true NODE_EXTRA_CA_CERTS=/etc/build-roots.pem
RUN node -e 'console.log([...tls.rootCertificates, process.env.EXTRA_CA_CERTIFICATES].join("\n"))' > "$NODE_EXTRA_CA_CERTS"
COPY package.json ./
RUN npm install --global --no-audit --no-fund --ignore-scripts "$(node -p 'require("./package.json").packageManager')"

# What decides an install, without what changes every day: the layers below it are then kept.
FROM tools AS manifests
COPY . .
RUN find . -type f ! -name package.json ! -name 'pnpm-*.yaml' -delete && find . -type d -empty -delete

FROM tools AS install
COPY --from=manifests /rouse ./
RUN pnpm install --frozen-lockfile --filter rouse --filter-prod '@rouse/cli...'

FROM install AS build
COPY . .
RUN pnpm --filter-prod '@rouse/cli...' run build
# The site is what a node serves at /docs. Declarations and the CommonJS build of the client are for developers only.
RUN node -e 'import("./scripts/docs/site.mjs").then((site) => site.buildSite(site.siteFolder))' \
 && mkdir /built && cp -r --parents apps/*/dist apps/cli/bin apps/broker/site packages/*/dist migrations /built \
 && find /built -name '*.d.ts' -delete -o -name '*.d.ts.map' -delete && rm -r /built/packages/client/dist/cjs

# Again from what was downloaded, without the tools. Optional are the embedded PostgreSQL and native accelerators: a node
# needs neither. What was not built is no part of a node.
FROM install AS production
RUN rm -rf node_modules */*/node_modules \
 && pnpm install --frozen-lockfile --offline --trust-lockfile --prod --no-optional --filter-prod '@rouse/cli...'
COPY --from=build /built ./
RUN for package in apps/* packages/*; do [ -d "$package/dist" ] || rm -r "$package"; done \
 && rm -r test pnpm-*.yaml && chmod -R a+rX .

FROM node:22-bookworm-slim
ENV NODE_ENV=production ROUSE_HOST=0.0.0.0
COPY --from=production /rouse /rouse
COPY cluster-config/health-check.mjs /rouse/
RUN ln -s /rouse/apps/cli/bin/rouse.js /usr/local/bin/rouse
WORKDIR /rouse
# By number, so that Kubernetes sees that it is not root. The node writes no files.
USER 1000:1000
EXPOSE 4600/tcp 4601/udp
STOPSIGNAL SIGTERM
# Alive, not ready: a node without its database is not mended by a new container. Balancers ask /ready.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["node", "health-check.mjs"]
ENTRYPOINT ["rouse"]
CMD ["serve"]
