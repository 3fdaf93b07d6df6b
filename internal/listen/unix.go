package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// maxSocketPath is the longest path that sockets support on every platform, without the terminating zero byte.
const maxSocketPath = 103

// listenUnix creates a socket in a private folder next to path, sets its mode, and renames it to path, so that it is never open to others.
// It replaces the socket of a dead process.
func listenUnix(ctx context.Context, path string, mode fs.FileMode) (_ net.Listener, err error) {
	if err := checkVacant(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".ms-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	temporary := filepath.Join(dir, "s")
	if long := max(len(path), len(temporary)); long > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket can have %d bytes, and this one needs %d: choose a shorter path", maxSocketPath, long)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", temporary)
	if err != nil {
		return nil, err
	}
	if l, ok := listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false) // the socket was renamed
	}
	defer func() {
		if err != nil {
			_ = listener.Close()
		}
	}()
	if err := os.Chmod(temporary, mode); err != nil {
		return nil, err
	}
	if err := os.Rename(temporary, path); err != nil {
		return nil, err
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	s := &socket{Listener: listener, path: path}
	s.remove = sync.OnceFunc(func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(own, now) { // another sidecar may have replaced it
			_ = os.Remove(path)
		}
	})
	return s, nil
}

// checkVacant returns an error unless path is free or has a socket on which no process listens.
func checkVacant(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket: remove it", path)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%s: %w", path, syscall.EADDRINUSE)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("cannot find out whether a process listens on %s: %w", path, err)
}

// socket is a listener on a Unix socket that removes the socket when it is closed.
type socket struct {
	net.Listener
	path   string
	remove func()
}

// Close implements net.Listener.
func (s *socket) Close() error {
	s.remove()
	return s.Listener.Close()
}

// Addr implements net.Listener. It returns the address that clients dial.
func (s *socket) Addr() net.Addr { return socketAddr(s.path) }

type socketAddr string

// Network implements net.Addr.
func (socketAddr) Network() string { return "unix" }

// String implements net.Addr.
func (a socketAddr) String() string { return unixPrefix + string(a) }
