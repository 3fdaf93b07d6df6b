package main

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/memsidecar/memsidecar/internal/config"
)

type serveCommand struct{}

// Run starts the sidecar and stops it when the context ends (SIGTERM, SIGINT).
func (serveCommand) Run(ctx context.Context, m *Main, c *commands) error {
	loaded, err := m.load(c)
	if err != nil {
		return err
	}
	cfg := loaded.Config
	log := m.logger(cfg)
	defer limitMemory(cfg, m.Environ, log)()
	sidecar, err := Start(ctx, cfg, m.Environ, log)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		dir = cfg.DataDir
	}
	log.Info("memsidecar is ready", "address", sidecar.Addr.String(), "data_dir", dir, "version", version())
	if !loopback(sidecar.Addr) {
		log.Warn("listening outside of loopback without TLS and without authentication: anybody who reaches this address can "+
			"read and delete all memories", "address", sidecar.Addr.String())
	}
	if m.Started != nil {
		m.Started(sidecar)
	}
	err = sidecar.Wait(ctx)
	log.Info("stopping", "grace", cfg.ShutdownGrace)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownGrace)
	defer cancel()
	started := time.Now()
	sidecar.Stop(grace)
	log.Info("stopped", "took", time.Since(started))
	return err
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// logger writes to standard error as configured.
func (m *Main) logger(cfg config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		level = slog.LevelInfo // the configuration was validated
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(m.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(m.Stderr, options))
}
