// Package config reads the configuration. Flags override MEMSIDECAR_* environment variables, which override the YAML file, which
// overrides the defaults. Unknown keys and wrong values are errors, and all of them are reported together.
//
// To add a key, add a field to Config, its default to defaults, and its description to keys.yaml. The tags of the field say:
//   - koanf: the name of the key
//   - min, max, oneof: the allowed values
//   - default: what the reference shows when the default depends on the machine
//   - secret: that the value is never printed
//   - each: what the entries of a map of structs are; each entry has its own keys
//   - embedded, follows: see models.go
package config

import (
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/secret"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Config is the whole configuration. Load returns only valid ones.
type Config struct {
	Listen          string                `koanf:"listen"`
	SocketMode      string                `koanf:"socket_mode"`
	TLS             TLS                   `koanf:"tls"`
	Auth            Auth                  `koanf:"auth"`
	Insecure        bool                  `koanf:"insecure"`
	Limits          Limits                `koanf:"limits"`
	DataDir         string                `koanf:"data_dir" default:"memsidecar, in the user's data folder"`
	Encryption      Encryption            `koanf:"encryption"`
	Log             Log                   `koanf:"log"`
	HTTP            HTTP                  `koanf:"http"`
	API             API                   `koanf:"api"`
	OTel            OTel                  `koanf:"otel"`
	TimeZone        string                `koanf:"time_zone"`
	Visibility      memory.VisibilityRule `koanf:"visibility" oneof:"channel user"`
	ShareGroups     []ShareGroup          `koanf:"share_groups"`
	MaxRequestBytes int                   `koanf:"max_request_bytes" min:"65536" max:"1073741824"`
	Embedding       Embedding             `koanf:"embedding"`
	Decision        Model                 `koanf:"decision"`
	Summary         Model                 `koanf:"summary"`
	Reconcile       Reconcile             `koanf:"reconcile"`
	LLM             LLM                   `koanf:"llm"`
	Rules           local.Config          `koanf:"rules"`
	Breaker         Breaker               `koanf:"breaker"`
	Index           Index                 `koanf:"index"`
	Retrieval       Retrieval             `koanf:"retrieval"`
	Queue           Queue                 `koanf:"queue"`
	Session         Session               `koanf:"session"`
	History         History               `koanf:"history"`
	Redact          Redact                `koanf:"redact"`
	Namespaces      []Namespace           `koanf:"namespaces"`
	Digest          Digest                `koanf:"digest"`
	Notebook        Notebook              `koanf:"notebook"`
	Memories        Memories              `koanf:"memories"`
	Trace           Trace                 `koanf:"trace"`
	NumberedLists   NumberedLists         `koanf:"numbered_lists"`
	ShutdownGrace   time.Duration         `koanf:"shutdown_grace" min:"0" max:"10m"`
}

// Log configures logging.
type Log struct {
	Level  string `koanf:"level" oneof:"debug info warn error"`
	Format string `koanf:"format" oneof:"text json"`
}

// HTTP configures the operators' port: /healthz, /readyz, /metrics and, optionally, /debug/pprof/.
type HTTP struct {
	Listen      string `koanf:"listen"`
	AllowRemote bool   `koanf:"allow_remote"`
	Pprof       bool   `koanf:"pprof"`
}

// OTel configures where OpenTelemetry spans are sent.
type OTel struct {
	Endpoint string `koanf:"endpoint"`
	Protocol string `koanf:"protocol" oneof:"grpc http"`
}

// Embedding configures the embedding model.
type Embedding struct {
	Provider     string        `koanf:"provider" embedded:"local"`
	Model        string        `koanf:"model"`
	Endpoint     string        `koanf:"endpoint"`
	APIKey       secret.Value  `koanf:"api_key" secret:"true"`
	APIKeyFile   string        `koanf:"api_key_file"`
	Dimensions   int           `koanf:"dimensions" min:"0" max:"4096"`
	ChunkSize    int           `koanf:"chunk_size" min:"50" max:"8000"`
	Timeout      time.Duration `koanf:"timeout" min:"100ms" max:"10m"`
	CacheEntries int           `koanf:"cache_entries" min:"0" max:"1000000"`
}

// Model configures a text model.
type Model struct {
	Provider   string        `koanf:"provider" embedded:"rules"`
	Model      string        `koanf:"model"`
	Endpoint   string        `koanf:"endpoint"`
	APIKey     secret.Value  `koanf:"api_key" secret:"true"`
	APIKeyFile string        `koanf:"api_key_file"`
	Prompt     string        `koanf:"prompt"`
	Generation Generation    `koanf:"generation"`
	Timeout    time.Duration `koanf:"timeout" min:"100ms" max:"10m"`
}

// Generation configures a model's sampling.
type Generation struct {
	Temperature     float64 `koanf:"temperature" min:"-1" max:"2"`
	TopP            float64 `koanf:"top_p" min:"-1" max:"1"`
	MaxOutputTokens int     `koanf:"max_output_tokens" min:"0" max:"1000000"`
}

// Reconcile configures how rules compare new statements with existing memories.
type Reconcile struct {
	Enabled bool `koanf:"enabled"`
}

// LLM configures budgets and prices of models.
type LLM struct {
	DailyTokenBudget     int64        `koanf:"daily_token_budget" min:"0" max:"1000000000000"`
	DailyUserTokenBudget int64        `koanf:"daily_user_token_budget" min:"0" max:"1000000000000"`
	Prices               usage.Prices `koanf:"prices"`
}

// Breaker configures the circuit breakers of models.
type Breaker struct {
	Failures int           `koanf:"failures" min:"1" max:"1000"`
	OpenFor  time.Duration `koanf:"open_for" min:"100ms" max:"1h"`
}

// Index configures the search index in memory.
type Index struct {
	BudgetMiB int `koanf:"budget_mib" min:"1" max:"1048576"`
}

// Retrieval configures the read path. A request overrides top_k, min_relevance and max_context_chars.
type Retrieval struct {
	Budget           time.Duration    `koanf:"budget" min:"1ms" max:"1m"`
	TopK             int              `koanf:"top_k" min:"1" max:"100"`
	MinRelevance     float64          `koanf:"min_relevance" min:"0" max:"1"`
	MaxContextChars  int              `koanf:"max_context_chars" min:"200" max:"100000"`
	VectorWeight     float64          `koanf:"vector_weight" min:"0" max:"1"`
	StandingMaxChars int              `koanf:"standing_max_chars" min:"0" max:"10000"`
	NeighborWeight   float64          `koanf:"neighbor_weight" min:"0" max:"1"`
	RecencyHalfLife  time.Duration    `koanf:"recency_half_life" min:"1m" max:"876000h"`
	Agent            string           `koanf:"agent" oneof:"any this"`
	Prompts          retrieve.Prompts `koanf:"prompts" each:"language"`
}

// Queue configures how accepted dialogues are considered.
type Queue struct {
	Workers                int           `koanf:"workers" min:"1" max:"256"`
	MaxPendingPerUser      int           `koanf:"max_pending_per_user" min:"1" max:"1000000"`
	MaxPendingPerNamespace int           `koanf:"max_pending_per_namespace" min:"0" max:"100000000"`
	MaxPending             int           `koanf:"max_pending" min:"0" max:"100000000"`
	MaxPendingBytes        int           `koanf:"max_pending_bytes" min:"0" max:"1125899906842624"`
	MaxAge                 time.Duration `koanf:"max_age" min:"1m" max:"8760h"`
	MaxWait                time.Duration `koanf:"max_wait" min:"0" max:"1h"`
	BackoffMin             time.Duration `koanf:"backoff_min" min:"1ms" max:"24h"`
	BackoffMax             time.Duration `koanf:"backoff_max" min:"1ms" max:"24h"`
	Retention              time.Duration `koanf:"retention" min:"0" max:"876000h"`
	FailedRetention        time.Duration `koanf:"failed_retention" min:"0" max:"876000h"`
}

// Session configures conversations. A request overrides max_messages, max_turns and max_chars.
type Session struct {
	Enabled          bool              `koanf:"enabled"`
	RecordConsidered bool              `koanf:"record_considered"`
	MemorizeEvery    int               `koanf:"memorize_every" min:"0" max:"1000"`
	Idle             time.Duration     `koanf:"idle" min:"0" max:"720h"`
	TTL              time.Duration     `koanf:"ttl" min:"1s" max:"87600h"`
	MaxMessages      int               `koanf:"max_messages" min:"1" max:"1000"`
	MaxTurns         int               `koanf:"max_turns" min:"1" max:"1000"`
	MaxChars         int               `koanf:"max_chars" min:"1" max:"1000000"`
	FailureMaxChars  int               `koanf:"failure_max_chars" min:"0" max:"10000"`
	ClaimMaxChars    int               `koanf:"claim_max_chars" min:"0" max:"10000"`
	FailurePhrases   []string          `koanf:"failure_phrases"`
	SummaryMaxChars  int               `koanf:"summary_max_chars" min:"0" max:"100000"`
	Labels           map[string]string `koanf:"labels"`
	Wordings         session.Wordings  `koanf:"wordings" each:"language"`
}

// History configures what is stored of conversations.
type History struct {
	Retention time.Duration `koanf:"retention" min:"0" max:"876000h"`
	Vectors   int           `koanf:"vectors" min:"0" max:"100000"`
	Redact    bool          `koanf:"redact"`
}

// Redact configures which secrets are removed from derived data and from texts sent to remote models.
type Redact struct {
	Enabled bool          `koanf:"enabled"`
	Kinds   []redact.Kind `koanf:"kinds"`
	// DirectWrites also redacts what callers write directly.
	DirectWrites bool `koanf:"direct_writes"`
}

// Redactor returns the redactor of a valid configuration; nil when redaction is off.
func (r Redact) Redactor() *redact.Redactor {
	if !r.Enabled {
		return nil
	}
	redactor, err := redact.New(r.Kinds)
	if err != nil {
		panic(err) // validate has seen it
	}
	return redactor
}

// Digest configures daily digests. It uses the model of summary unless one is named.
type Digest struct {
	Enabled    bool             `koanf:"enabled"`
	Interval   int              `koanf:"interval" min:"0" max:"100"`
	Provider   string           `koanf:"provider" embedded:"rules" follows:"summary"`
	Model      string           `koanf:"model"`
	Endpoint   string           `koanf:"endpoint"`
	APIKey     secret.Value     `koanf:"api_key" secret:"true"`
	APIKeyFile string           `koanf:"api_key_file"`
	Prompt     string           `koanf:"prompt"`
	MaxTokens  int              `koanf:"max_tokens" min:"100" max:"32000"`
	Generation Generation       `koanf:"generation"`
	Timeout    time.Duration    `koanf:"timeout" min:"100ms" max:"10m"`
	Templates  digest.Templates `koanf:"templates" default:"a built-in one each for en and zh"`
	ExportDir  string           `koanf:"export_dir"`
}

// Text returns the model in the form that other sections use.
func (d Digest) Text() Model {
	generation := d.Generation
	if generation.MaxOutputTokens == 0 {
		generation.MaxOutputTokens = d.MaxTokens
	}
	return Model{
		Provider: d.Provider, Model: d.Model, Endpoint: d.Endpoint, APIKey: d.APIKey, APIKeyFile: d.APIKeyFile, Prompt: d.Prompt,
		Generation: generation, Timeout: d.Timeout,
	}
}

// Notebook configures the view of all memories of a user.
type Notebook struct {
	MaxEntries int `koanf:"max_entries" min:"1" max:"10000"`
}

// Memories configures how long memories are kept.
type Memories struct {
	MaxPerUser     int                 `koanf:"max_per_user" min:"0" max:"10000000"`
	HalfLives      retention.HalfLives `koanf:"half_lives"`
	WithdrawnGrace time.Duration       `koanf:"withdrawn_grace" min:"0" max:"8760h"`
	ExpiredKeep    time.Duration       `koanf:"expired_keep" min:"0" max:"876000h"`
	HistoryKeep    time.Duration       `koanf:"history_keep" min:"0" max:"876000h"`
}

// Namespace overrides settings for some namespaces. A nil field overrides nothing.
type Namespace struct {
	Name             string         `koanf:"name"`
	SessionEnabled   *bool          `koanf:"session_enabled"`
	MemorizeEvery    *int           `koanf:"memorize_every"`
	HistoryRetention *time.Duration `koanf:"history_retention"`

	DailyTokenBudget     *int64 `koanf:"daily_token_budget"`
	DailyUserTokenBudget *int64 `koanf:"daily_user_token_budget"`

	NamespaceMemories     *int64 `koanf:"namespace_memories"`
	NamespaceHistoryBytes *int64 `koanf:"namespace_history_bytes"`
	UserHistoryBytes      *int64 `koanf:"user_history_bytes"`
	NamespaceLists        *int64 `koanf:"namespace_lists"`
	UserLists             *int64 `koanf:"user_lists"`
}

// Matches reports whether the entry applies to the namespace.
func (n Namespace) Matches(namespace string) bool {
	if below, ok := strings.CutSuffix(n.Name, "*"); ok {
		return strings.HasPrefix(namespace, below)
	}
	return n.Name == namespace
}

// ShareGroup is a list of groups that share their memories.
type ShareGroup struct {
	Namespace string   `koanf:"namespace"`
	Channels  []string `koanf:"channels"`
}

// Policy returns which memories are visible where.
func (c *Config) Policy() memory.Visibility {
	var shared []memory.SharedGroups
	for _, s := range c.ShareGroups {
		shared = append(shared, memory.SharedGroups{
			Namespace: memory.Scope{Namespace: s.Namespace}.Normalize().Namespace, Channels: s.Channels,
		})
	}
	return memory.NewVisibility(c.Visibility, shared)
}

// Trace configures the traces of calls.
type Trace struct {
	Retention  time.Duration `koanf:"retention" min:"0" max:"8760h"`
	MaxRecords int           `koanf:"max_records" min:"1" max:"100000000"`
}

// NumberedLists configures how long numbered lists are kept.
type NumberedLists struct {
	MaxItems int           `koanf:"max_items" min:"1" max:"100000"`
	MaxAge   time.Duration `koanf:"max_age" min:"0" max:"876000h"`
	ListTTL  time.Duration `koanf:"list_ttl" min:"0" max:"876000h"`
}

// defaults returns the default configuration.
func defaults(dataDir string) Config {
	model := Model{Provider: "auto", Generation: Generation{Temperature: -1, TopP: -1}, Timeout: time.Minute}
	return Config{
		Listen:          "127.0.0.1:7420",
		SocketMode:      "0660",
		DataDir:         dataDir,
		Log:             Log{Level: "info", Format: "text"},
		OTel:            OTel{Protocol: "grpc"},
		TimeZone:        "Local",
		Visibility:      memory.VisibilityChannel,
		ShareGroups:     []ShareGroup{},
		MaxRequestBytes: 8 << 20,
		Embedding:       Embedding{Provider: "auto", ChunkSize: 300, Timeout: 10 * time.Second, CacheEntries: 1024},
		Decision:        model,
		Summary:         model,
		Reconcile:       Reconcile{Enabled: true},
		Rules: local.Config{
			Threshold:         local.DefaultLeast,
			MaxStatements:     local.DefaultMaxStatements,
			MaxStatementRunes: local.DefaultMaxRunes,
		},
		LLM:     LLM{Prices: usage.Prices{}},
		Breaker: Breaker{Failures: 5, OpenFor: 30 * time.Second},
		Index:   Index{BudgetMiB: 256},
		Retrieval: Retrieval{
			Budget:           800 * time.Millisecond,
			TopK:             3,
			MinRelevance:     0.02,
			MaxContextChars:  2000,
			StandingMaxChars: 300,
			NeighborWeight:   0.5,
			RecencyHalfLife:  720 * time.Hour,
			Agent:            "any",
			Prompts:          retrieve.DefaultPrompts(),
		},
		Queue: Queue{
			Workers:           8,
			MaxPendingPerUser: 1000,
			MaxPending:        100_000,
			MaxPendingBytes:   1 << 30,
			MaxAge:            168 * time.Hour,
			Retention:         720 * time.Hour,
			FailedRetention:   8760 * time.Hour,
			MaxWait:           30 * time.Second,
			BackoffMin:        time.Second,
			BackoffMax:        5 * time.Minute,
		},
		Session: Session{
			Enabled: true, RecordConsidered: true, MemorizeEvery: 10, Idle: 2 * time.Minute, TTL: 24 * time.Hour,
			MaxMessages: 10, MaxTurns: 5, MaxChars: 4000, ClaimMaxChars: 50, FailurePhrases: []string{}, SummaryMaxChars: 1000,
			Labels: map[string]string{}, Wordings: session.DefaultWordings(),
		},
		History: History{Vectors: 1000},
		Redact:  Redact{Enabled: true, DirectWrites: true, Kinds: slices.Sorted(slices.Values(redact.Kinds()))},
		Digest: Digest{
			Enabled: true, Interval: 10, Provider: "auto", MaxTokens: 4000, Generation: model.Generation, Timeout: model.Timeout,
			Templates: digest.DefaultTemplates(),
		},
		Notebook:      Notebook{MaxEntries: 200},
		Memories:      Memories{MaxPerUser: 10_000, HalfLives: retention.HalfLives{}, WithdrawnGrace: 24 * time.Hour},
		Namespaces:    []Namespace{},
		Trace:         Trace{Retention: 168 * time.Hour, MaxRecords: 50_000},
		NumberedLists: NumberedLists{MaxItems: 2000, MaxAge: 2160 * time.Hour},
		ShutdownGrace: 10 * time.Second,
	}
}
