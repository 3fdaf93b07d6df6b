package client

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// sidecarFlag says which sidecar is meant.
type sidecarFlag struct {
	Addr string `variable:"MEMSIDECAR_ADDR" group:"sidecar" placeholder:"HOST:PORT" help:"Where the sidecar listens; also MEMSIDECAR_ADDR. By default where the configuration lets it listen."`
}

// calls are the flags of commands that make calls of bounded length.
type calls struct {
	sidecarFlag
	Timeout time.Duration `group:"sidecar" default:"30s" placeholder:"DURATION" help:"How long to wait for each answer (${default})."`
}

// person is whose memories a command is about.
type person struct {
	namespaceFlag
	User string `short:"u" variable:"MEMSIDECAR_USER" group:"scope" placeholder:"ID" help:"Whose memories; also MEMSIDECAR_USER."`
}

type namespaceFlag struct {
	Namespace string `short:"n" variable:"MEMSIDECAR_NAMESPACE" group:"scope" placeholder:"PATH" help:"Namespace of the user; also MEMSIDECAR_NAMESPACE."`
}

// place is where something is said or asked; it decides what is visible.
type place struct {
	person
	Channel     string `group:"scope" placeholder:"ID" help:"The channel; needs --channel-kind."`
	ChannelKind string `group:"scope" placeholder:"KIND" enum:",direct,group,unspecified" default:"" help:"direct, group or unspecified: what is visible, and to whom."`
}

// agentFlag is the bot or persona.
type agentFlag struct {
	Agent string `group:"scope" placeholder:"ID" help:"The bot or persona."`
}

// address is the sidecar's, of the flag or of the configuration.
func (f sidecarFlag) address(p *Program) (string, error) {
	if f.Addr != "" {
		if err := checkAddress(f.Addr); err != nil {
			return "", usage("--addr %s: %v", f.Addr, err)
		}
		return f.Addr, nil
	}
	listen, err := p.Listen()
	if err != nil {
		return "", fmt.Errorf("%w\n(the configuration says where the sidecar listens; --addr says it, too)", err)
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", usage("the sidecar is configured to listen on %s: say with --addr where it is", listen)
	}
	// What listens everywhere also listens on loopback.
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip == netip.IPv4Unspecified() {
		host = "127.0.0.1"
	} else if err == nil && ip == netip.IPv6Unspecified() {
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}

func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host != "" && port != "" && port != "0" {
		return nil
	}
	return fmt.Errorf("write HOST:PORT, for example 127.0.0.1:7420")
}

// whole is the scope of what concerns everything of a user.
func (f person) whole() (*memsidecarv1.Scope, error) {
	if f.User == "" {
		return nil, usage("say whose memories with --user ID (or the variable MEMSIDECAR_USER)")
	}
	return f.anybody(), nil
}

// anybody is the scope of what may be nobody's by name.
func (f person) anybody() *memsidecarv1.Scope {
	return &memsidecarv1.Scope{Namespace: f.Namespace, UserId: f.User}
}

// sees is the scope of what shows or changes memories: everything of the user, unless a channel is given.
func (f place) sees() (*memsidecarv1.Scope, error) {
	return f.scope(memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT)
}

// says is the scope of what stores something: visible to a bot that sets no channels, unless a channel is given.
func (f place) says() (*memsidecarv1.Scope, error) {
	return f.scope(memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED)
}

func (f place) scope(kind memsidecarv1.ChannelKind) (*memsidecarv1.Scope, error) {
	scope, err := f.whole()
	if err != nil {
		return nil, err
	}
	return f.in(scope, kind)
}

// in adds the channel, of the kind given unless a flag says another.
func (f place) in(scope *memsidecarv1.Scope, kind memsidecarv1.ChannelKind) (*memsidecarv1.Scope, error) {
	if f.Channel != "" && f.ChannelKind == "" {
		return nil, usage("say with --channel-kind whether channel %s is a direct chat or a group", f.Channel)
	}
	if f.ChannelKind != "" {
		kind = memsidecarv1.ChannelKind(valueOf(memsidecarv1.ChannelKind_value, "CHANNEL_KIND_", f.ChannelKind))
	}
	scope.ChannelId, scope.ChannelKind = f.Channel, kind
	return scope, nil
}
