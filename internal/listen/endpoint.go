// Package listen opens the addresses where a sidecar listens: network addresses and Unix sockets, with or without TLS.
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

// unixPrefix is the prefix of Unix socket addresses.
const unixPrefix = "unix:"

// SocketPath returns the path of an address such as unix:/run/memsidecar.sock.
func SocketPath(address string) (path string, ok bool) { return strings.CutPrefix(address, unixPrefix) }

// AddressProblem returns what is wrong with an address to listen on, or "".
func AddressProblem(address string) string {
	if path, ok := SocketPath(address); ok {
		if !filepath.IsAbs(path) {
			return fmt.Sprintf("is %q, which is not an absolute path", address)
		}
		return ""
	}
	return NetworkAddressProblem(address)
}

// NetworkAddressProblem is Problem for listeners that accept only network addresses.
func NetworkAddressProblem(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("is %q", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("is %q, whose port is not 0 to 65535", address)
	}
	return ""
}

// IsLocal reports whether an address can be reached only from this machine. Names other than localhost are assumed to be remote.
func IsLocal(address string) bool {
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

// ParseMode parses the mode of a Unix socket, such as 0660.
func ParseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 {
		return 0, fmt.Errorf("%q is not a file mode of three octal digits, such as 0660", text)
	}
	return fs.FileMode(mode), nil
}

// Listen listens on an address. mode applies to Unix sockets.
func Listen(ctx context.Context, address string, mode fs.FileMode) (net.Listener, error) {
	if path, ok := SocketPath(address); ok {
		return listenUnix(ctx, path, mode)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}
