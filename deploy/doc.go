// Package deploy holds what helps to run sidecars: a dashboard for Grafana and alerts for Prometheus. It has no code but
// the tests of these.
package deploy
