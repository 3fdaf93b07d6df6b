package cli

import (
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// sidecarFlag selects the sidecar and the connection's security.
type sidecarFlag struct {
	Addr string `variable:"MEMSIDECAR_ADDR" group:"sidecar" placeholder:"HOST:PORT" help:"Address of the sidecar (default: as configured); also MEMSIDECAR_ADDR."`

	Token      string `variable:"MEMSIDECAR_TOKEN" group:"sidecar" placeholder:"TOKEN" help:"Access token; MEMSIDECAR_TOKEN hides it from other users."`
	TokenFile  string `variable:"MEMSIDECAR_TOKEN_FILE" group:"sidecar" placeholder:"FILE" complete:"file" help:"File with the token."`
	TLS        bool   `name:"tls" variable:"MEMSIDECAR_TLS" group:"sidecar" help:"Encrypt the connection; also MEMSIDECAR_TLS=true. The next four flags imply it."`
	CA         string `name:"ca" variable:"MEMSIDECAR_CA" group:"sidecar" placeholder:"FILE" complete:"file" help:"CA certificates (PEM); also MEMSIDECAR_CA."`
	Cert       string `variable:"MEMSIDECAR_CERT" group:"sidecar" placeholder:"FILE" complete:"file" help:"Client certificate (PEM); also MEMSIDECAR_CERT."`
	Key        string `variable:"MEMSIDECAR_KEY" group:"sidecar" placeholder:"FILE" complete:"file" help:"Private key of --cert (PEM); also MEMSIDECAR_KEY."`
	ServerName string `variable:"MEMSIDECAR_SERVER_NAME" group:"sidecar" placeholder:"NAME" help:"Name in the sidecar's certificate; also MEMSIDECAR_SERVER_NAME."`
}

// calls are the flags of commands with a timeout per call.
type calls struct {
	sidecarFlag
	Timeout time.Duration `group:"sidecar" default:"30s" placeholder:"DURATION" help:"Longest wait for each answer (${default})."`
}

// person selects the user of a command.
type person struct {
	namespaceFlag
	User string `short:"u" variable:"MEMSIDECAR_USER" group:"scope" placeholder:"ID" help:"The user; also MEMSIDECAR_USER."`
}

type namespaceFlag struct {
	Namespace string `short:"n" variable:"MEMSIDECAR_NAMESPACE" group:"scope" placeholder:"PATH" help:"Namespace of the user; also MEMSIDECAR_NAMESPACE."`
}

// place selects the channel, which decides what is visible.
type place struct {
	person
	Channel     string `group:"scope" placeholder:"ID" help:"The channel; needs --channel-kind."`
	ChannelKind string `group:"scope" placeholder:"KIND" enum:",direct,group,unspecified" default:"" help:"direct, group or unspecified. Decides what is visible."`
}

// agentFlag selects the bot or persona.
type agentFlag struct {
	Agent string `group:"scope" placeholder:"ID" help:"The bot or persona."`
}

// learnedByFlag selects the agents whose memories count.
type learnedByFlag struct {
	LearnedBy string `enum:",any,this" default:"" placeholder:"WHO" help:"any, or this: only memories that --agent learned. By default as configured."`
}

func (f learnedByFlag) filter(agent string) (memsidecarv1.AgentFilter, error) {
	if f.LearnedBy == "this" && agent == "" {
		return 0, usage("--learned-by this needs --agent")
	}
	return memsidecarv1.AgentFilter(valueOf(memsidecarv1.AgentFilter_value, "AGENT_FILTER_", f.LearnedBy)), nil
}

// userScope returns the scope of a whole user.
func (f person) userScope() (*memsidecarv1.Scope, error) {
	if f.User == "" {
		return nil, usage("name the user with --user ID (or MEMSIDECAR_USER)")
	}
	return f.optionalScope(), nil
}

// optionalScope returns the scope if --user is optional.
func (f person) optionalScope() *memsidecarv1.Scope {
	return &memsidecarv1.Scope{Namespace: f.Namespace, UserId: f.User}
}

// readScope returns the scope for showing and changing memories: the whole user, unless a channel is given.
func (f place) readScope() (*memsidecarv1.Scope, error) {
	return f.scope(memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT)
}

// writeScope returns the scope for storing: that of a bot without channels, unless a channel is given.
func (f place) writeScope() (*memsidecarv1.Scope, error) {
	return f.scope(memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED)
}

func (f place) scope(kind memsidecarv1.ChannelKind) (*memsidecarv1.Scope, error) {
	scope, err := f.userScope()
	if err != nil {
		return nil, err
	}
	return f.withChannel(scope, kind)
}

// withChannel adds the channel. kind is used unless a flag sets another.
func (f place) withChannel(scope *memsidecarv1.Scope, kind memsidecarv1.ChannelKind) (*memsidecarv1.Scope, error) {
	if f.Channel != "" && f.ChannelKind == "" {
		return nil, usage("channel %s needs --channel-kind direct or --channel-kind group", f.Channel)
	}
	if f.ChannelKind != "" {
		kind = memsidecarv1.ChannelKind(valueOf(memsidecarv1.ChannelKind_value, "CHANNEL_KIND_", f.ChannelKind))
	}
	scope.ChannelId, scope.ChannelKind = f.Channel, kind
	return scope, nil
}
