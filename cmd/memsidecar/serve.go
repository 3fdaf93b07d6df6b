package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/memsidecar/memsidecar/internal/observe/logs"
	"github.com/memsidecar/memsidecar/internal/sidecar"
)

type serveCommand struct{}

// Run starts the sidecar and stops it when the context ends (SIGTERM, SIGINT).
func (serveCommand) Run(ctx context.Context, m *Main, c *commands) error {
	loaded, err := m.load(c)
	if err != nil {
		return err
	}
	cfg := loaded.Config
	log := logs.New(m.Stderr, cfg.Log.Level, cfg.Log.Format)
	defer limitMemory(cfg, m.Environ, log)()
	running, err := sidecar.Start(ctx, cfg, sidecar.Options{Environ: m.Environ, Log: log})
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		dir = cfg.DataDir
	}
	log.Info("memsidecar is ready", "address", running.Addr.String(), "data_dir", dir, "version", sidecar.Version())
	if running.APIAddr != nil {
		log.Info("calls are answered as JSON over HTTP", "address", running.APIAddr.String(), "mcp", cfg.API.MCP)
	}
	defer reloadOnHangup(running)()
	if running.HTTPAddr != nil {
		log.Info("health checks and metrics are served", "address", running.HTTPAddr.String(), "pprof", cfg.HTTP.Pprof)
	}
	if m.Started != nil {
		m.Started(running)
	}
	err = running.Wait(ctx)
	log.Info("stopping", "grace", cfg.ShutdownGrace)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownGrace)
	defer cancel()
	started := time.Now()
	running.Stop(grace)
	log.Info("stopped", "took", time.Since(started))
	return err
}

// reloadOnHangup makes SIGHUP reload tokens and certificates, if there are any. Otherwise SIGHUP ends the process, as when its terminal
// is closed.
func reloadOnHangup(running *sidecar.Sidecar) (stop func()) {
	if !running.Reloadable() {
		return func() {}
	}
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangups {
			running.Reload()
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}
