// Package listen is where a sidecar listens: an address of the network or a Unix socket, with or without TLS.
package listen

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// unixPrefix begins the addresses of Unix sockets.
const unixPrefix = "unix:"

// SocketPath returns the path of an address such as unix:/run/memsidecar.sock.
func SocketPath(address string) (path string, ok bool) { return strings.CutPrefix(address, unixPrefix) }

// Problem says what is wrong with an address to listen on, or "".
func Problem(address string) string {
	if path, ok := SocketPath(address); ok {
		if !filepath.IsAbs(path) {
			return fmt.Sprintf("is %q, which is no absolute path", address)
		}
		return ""
	}
	return NetworkProblem(address)
}

// NetworkProblem is Problem for what listens on the network alone.
func NetworkProblem(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("is %q", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("is %q, whose port is not 0 to 65535", address)
	}
	return ""
}

// Local reports whether only this machine reaches an address. A name other than localhost may mean anything.
func Local(address string) bool {
	if _, ok := SocketPath(address); ok {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// ParseMode reads the mode of a Unix socket, such as 0660.
func ParseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 {
		return 0, fmt.Errorf("%q is not a file mode of three octal digits, such as 0660", text)
	}
	return fs.FileMode(mode), nil
}

// Listen listens on an address; the mode is that of a Unix socket.
func Listen(ctx context.Context, address string, mode fs.FileMode) (net.Listener, error) {
	if path, ok := SocketPath(address); ok {
		return listenUnix(ctx, path, mode)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}
