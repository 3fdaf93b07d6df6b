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

// maxSocketPath is what every platform's socket addresses hold, with the terminating zero byte.
const maxSocketPath = 103

// listenUnix makes a socket beside its place, in a folder that nobody else may enter, and renames it when it has its mode: at
// no moment may anybody connect who should not. It takes the place of one that a dead process left behind.
func listenUnix(ctx context.Context, path string, mode fs.FileMode) (_ net.Listener, err error) {
	if err := vacant(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".ms-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	beside := filepath.Join(dir, "s")
	if long := max(len(path), len(beside)); long > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket holds %d bytes, and this one needs %d: choose a shorter one", maxSocketPath, long)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", beside)
	if err != nil {
		return nil, err
	}
	if l, ok := listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false) // its name is another
	}
	defer func() {
		if err != nil {
			_ = listener.Close()
		}
	}()
	if err := os.Chmod(beside, mode); err != nil {
		return nil, err
	}
	if err := os.Rename(beside, path); err != nil {
		return nil, err
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	s := &socket{Listener: listener, path: path}
	s.remove = sync.OnceFunc(func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(own, now) { // and not another sidecar's by now
			_ = os.Remove(path)
		}
	})
	return s, nil
}

// vacant is an error unless nothing is in the socket's place, or one that nobody listens on any more.
func vacant(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket: remove it", path)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%s: %w", path, syscall.EADDRINUSE)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("whether somebody listens on %s cannot be found out: %w", path, err)
}

// socket is a listener on a Unix socket that removes it at the end.
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

// Addr implements net.Listener: what clients dial.
func (s *socket) Addr() net.Addr { return socketAddr(s.path) }

type socketAddr string

// Network implements net.Addr.
func (socketAddr) Network() string { return "unix" }

// String implements net.Addr.
func (a socketAddr) String() string { return unixPrefix + string(a) }
