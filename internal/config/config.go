// Package config is what an operator may set: defaults, below a YAML file, below MEMSIDECAR_* environment variables,
// below flags. It is strict, and names everything that is wrong at once.
//
// A field's tags are the single source of its key (koanf), of what is checked (min, max, oneof) and of the reference
// (doc). A field of type map of structs has one key for each entry; the tag "each" says what the entries are. The tag
// "secret" keeps a value out of everything that is printed. The tags "embedded" and "follows" are explained in models.go.
// The tag "default" replaces, in the reference, a default that depends on the machine.
package config

import (
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide/rules"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/secret"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Config is the whole configuration. One that Load returned is valid.
type Config struct {
	Listen          string                `koanf:"listen" doc:"host:port to serve on, where port 0 takes any free one, or unix:/path for a socket; outside of loopback it needs tls and auth"`
	SocketMode      string                `koanf:"socket_mode" doc:"file mode of a Unix socket: who on this machine may call"`
	TLS             TLS                   `koanf:"tls"`
	Auth            Auth                  `koanf:"auth"`
	Insecure        bool                  `koanf:"insecure" doc:"whether to listen outside of loopback without tls or without auth: then whoever reaches the address can read and delete all memories"`
	Limits          Limits                `koanf:"limits"`
	DataDir         string                `koanf:"data_dir" default:"memsidecar, in the user's data folder" doc:"folder of the database, made when it is missing"`
	Encryption      Encryption            `koanf:"encryption"`
	Log             Log                   `koanf:"log"`
	HTTP            HTTP                  `koanf:"http"`
	API             API                   `koanf:"api"`
	OTel            OTel                  `koanf:"otel"`
	TimeZone        string                `koanf:"time_zone" doc:"IANA name, such as Asia/Shanghai, of the zone of users who set none; Local is the machine's"`
	Visibility      memory.VisibilityRule `koanf:"visibility" oneof:"channel user" doc:"channel: a group sees what was learned in it; user: every channel sees all of its user's memories"`
	ShareGroups     []ShareGroup          `koanf:"share_groups" doc:"lists of groups that see what was learned in each other, a mapping each: namespace (default when left out), channels (ids of two groups or more)"`
	MaxRequestBytes int                   `koanf:"max_request_bytes" min:"65536" max:"1073741824" doc:"largest request accepted, in bytes"`
	Embedding       Embedding             `koanf:"embedding"`
	Decision        Model                 `koanf:"decision"`
	Summary         Model                 `koanf:"summary"`
	Reconcile       Reconcile             `koanf:"reconcile"`
	LLM             LLM                   `koanf:"llm"`
	Rules           rules.Config          `koanf:"rules"`
	Breaker         Breaker               `koanf:"breaker"`
	Index           Index                 `koanf:"index"`
	Retrieval       Retrieval             `koanf:"retrieval"`
	Queue           Queue                 `koanf:"queue"`
	Session         Session               `koanf:"session"`
	History         History               `koanf:"history"`
	Redact          Redact                `koanf:"redact"`
	Namespaces      []Namespace           `koanf:"namespaces" doc:"what holds for some namespaces only, a mapping each: name (or a/b/* for all below a/b; the first that fits counts), session_enabled, memorize_every, history_retention, daily_token_budget, daily_user_token_budget, and of limits namespace_memories, namespace_history_bytes, user_history_bytes, namespace_lists, user_lists"`
	Digest          Digest                `koanf:"digest"`
	Notebook        Notebook              `koanf:"notebook"`
	Memories        Memories              `koanf:"memories"`
	Trace           Trace                 `koanf:"trace"`
	NumberedLists   NumberedLists         `koanf:"numbered_lists"`
	ShutdownGrace   time.Duration         `koanf:"shutdown_grace" min:"0" max:"10m" doc:"how long calls and considerations under way may go on after the signal to stop"`
}

// Log is how the sidecar logs.
type Log struct {
	Level  string `koanf:"level" oneof:"debug info warn error" doc:"least severe messages to log"`
	Format string `koanf:"format" oneof:"text json" doc:"form of the log lines"`
}

// HTTP is the port for operators: /healthz, /readyz, /metrics and, if wanted, /debug/pprof/.
type HTTP struct {
	Listen      string `koanf:"listen" doc:"host:port for health checks, metrics and profiles over HTTP; empty serves none; port 0 takes any free one"`
	AllowRemote bool   `koanf:"allow_remote" doc:"whether listen may be an address outside of loopback: whoever reaches it sees the metrics"`
	Pprof       bool   `koanf:"pprof" doc:"whether /debug/pprof/ is served, on loopback only, and with auth only to tokens with admin access to *: profiles slow the sidecar down and show its memory"`
}

// OTel is where spans of OpenTelemetry go.
type OTel struct {
	Endpoint string `koanf:"endpoint" doc:"URL of a collector that takes OTLP, such as http://127.0.0.1:4317; empty takes OTEL_EXPORTER_OTLP_ENDPOINT, and without that no spans are made"`
	Protocol string `koanf:"protocol" oneof:"grpc http" doc:"how the collector is spoken to; OTEL_EXPORTER_OTLP_PROTOCOL is not read"`
}

// Embedding is how texts become vectors.
type Embedding struct {
	Provider     string        `koanf:"provider" embedded:"local" doc:"auto, local, or a provider such as gemini, openai or ollama; auto stays with what the database has, and on a new one takes gemini when GEMINI_API_KEY is set, else local"`
	Model        string        `koanf:"model" doc:"model of the provider, or provider/model; empty is the provider's usual one"`
	Endpoint     string        `koanf:"endpoint" doc:"base URL of the provider, or a full Gemini URL; empty is the provider's own"`
	APIKey       secret.Value  `koanf:"api_key" secret:"true" doc:"key of the provider; empty reads the provider's own variable, such as GEMINI_API_KEY"`
	APIKeyFile   string        `koanf:"api_key_file" doc:"file that holds the key, instead of api_key"`
	Dimensions   int           `koanf:"dimensions" min:"0" max:"4096" doc:"numbers in a vector; 0 is 256 for local and 768 for others; a change embeds everything again"`
	ChunkSize    int           `koanf:"chunk_size" min:"50" max:"8000" doc:"characters embedded together; a longer text matches by its best part"`
	Timeout      time.Duration `koanf:"timeout" min:"100ms" max:"10m" doc:"longest wait for one call of the provider"`
	CacheEntries int           `koanf:"cache_entries" min:"0" max:"1000000" doc:"embeddings of recent queries kept in memory; 0 keeps none"`
}

// Model is a text model that does one part of the work.
type Model struct {
	Provider   string        `koanf:"provider" embedded:"rules" doc:"auto, rules, or a provider such as gemini, openai, deepseek or ollama; auto as for embedding, with rules in the place of local"`
	Model      string        `koanf:"model" doc:"model of the provider, or provider/model; empty is the provider's usual one"`
	Endpoint   string        `koanf:"endpoint" doc:"base URL of the provider, or a full Gemini URL; empty is the provider's own"`
	APIKey     secret.Value  `koanf:"api_key" secret:"true" doc:"key of the provider; empty reads the provider's own variable, such as GEMINI_API_KEY"`
	APIKeyFile string        `koanf:"api_key_file" doc:"file that holds the key, instead of api_key"`
	Prompt     string        `koanf:"prompt" doc:"prompt with the placeholder {conversation}; empty is the built-in one"`
	Generation Generation    `koanf:"generation"`
	Timeout    time.Duration `koanf:"timeout" min:"100ms" max:"10m" doc:"longest wait for one call of the model"`
}

// Generation are the settings of a model's sampling.
type Generation struct {
	Temperature     float64 `koanf:"temperature" min:"-1" max:"2" doc:"randomness of the answer; -1 is the provider's default"`
	TopP            float64 `koanf:"top_p" min:"-1" max:"1" doc:"share of the likeliest words considered; -1 is the provider's default"`
	MaxOutputTokens int     `koanf:"max_output_tokens" min:"0" max:"1000000" doc:"longest answer, in the model's tokens; 0 is the provider's default"`
}

// Reconcile is how new statements are compared with what is known. The model is that of summary.
type Reconcile struct {
	Enabled  bool   `koanf:"enabled" doc:"whether what repeats, updates or contradicts what is known is told; without it all but equal texts is new, and only requests to forget are followed"`
	Provider string `koanf:"provider" oneof:"auto rules" doc:"auto takes the model that summary has, one call a consideration when something near is known; rules ask none"`
}

// LLM is what calls of models may cost.
type LLM struct {
	DailyTokenBudget     int64        `koanf:"daily_token_budget" min:"0" max:"1000000000000" doc:"tokens that models may take for a namespace in a day (UTC), in and out; then rules decide and summarise; 0 is any number"`
	DailyUserTokenBudget int64        `koanf:"daily_user_token_budget" min:"0" max:"1000000000000" doc:"the same for each user"`
	Prices               usage.Prices `koanf:"prices" doc:"what models cost, a mapping each: model (provider/model, or provider/*; the first that fits counts), input and output (a million tokens), currency"`
}

// Breaker is when a model that fails is left alone.
type Breaker struct {
	Failures int           `koanf:"failures" min:"1" max:"1000" doc:"failures in a row after which a model is left alone"`
	OpenFor  time.Duration `koanf:"open_for" min:"100ms" max:"1h" doc:"how long it is left alone before one call tries it again"`
}

// Index is the search index in memory.
type Index struct {
	BudgetMiB int `koanf:"budget_mib" min:"1" max:"1048576" doc:"memory for the indexes of all users together, in MiB; the least recently used are dropped first; the whole process is kept near 200 MiB more, unless GOMEMLIMIT is set"`
}

// Retrieval is the read path. What a request says itself comes before top_k, min_relevance and max_context_chars.
type Retrieval struct {
	Budget          time.Duration    `koanf:"budget" min:"1ms" max:"1m" doc:"time for a whole Retrieve; what is not there by then is left out of the answer"`
	TopK            int              `koanf:"top_k" min:"1" max:"100" doc:"how many memories at most"`
	MinRelevance    float64          `koanf:"min_relevance" min:"0" max:"1" doc:"relevance below which a memory is left out"`
	MaxContextChars int              `koanf:"max_context_chars" min:"200" max:"100000" doc:"longest prompt_context, in characters, wording included"`
	VectorWeight    float64          `koanf:"vector_weight" min:"0" max:"1" doc:"how far a cosine similarity of 1 is evidence of relevance; 0 is 0.3 for the local embedder and 0.8 for others"`
	NeighborWeight  float64          `koanf:"neighbor_weight" min:"0" max:"1" doc:"how much of its keyword score a past message gives the next one of its session, and less to others near it; 0: each counts by itself"`
	RecencyHalfLife time.Duration    `koanf:"recency_half_life" min:"1m" max:"876000h" doc:"age at which recency counts half"`
	Agent           string           `koanf:"agent" oneof:"any this" doc:"whose memories count for requests that name an agent and do not say it, those for digests and the notebook included: any agent's, or this one's alone"`
	Prompts         retrieve.Prompts `koanf:"prompts" each:"language"`
}

// Queue is how accepted dialogues are considered.
type Queue struct {
	Workers                int           `koanf:"workers" min:"1" max:"256" doc:"considerations at once; those of one user take turns"`
	MaxPendingPerUser      int           `koanf:"max_pending_per_user" min:"1" max:"1000000" doc:"waiting considerations of one user, beyond which new ones are refused"`
	MaxPendingPerNamespace int           `koanf:"max_pending_per_namespace" min:"0" max:"100000000" doc:"waiting considerations of a namespace, beyond which new ones are refused; 0 is any number"`
	MaxPending             int           `koanf:"max_pending" min:"0" max:"100000000" doc:"waiting considerations of all users together, beyond which new ones are refused; 0 is any number"`
	MaxPendingBytes        int           `koanf:"max_pending_bytes" min:"0" max:"1125899906842624" doc:"bytes of dialogues that wait, of all users together, beyond which new ones are refused; 0 is any number"`
	MaxAge                 time.Duration `koanf:"max_age" min:"1m" max:"8760h" doc:"how long a consideration is tried again before it fails"`
	MaxWait                time.Duration `koanf:"max_wait" min:"0" max:"1h" doc:"longest that a caller may wait for an outcome"`
	BackoffMin             time.Duration `koanf:"backoff_min" min:"1ms" max:"24h" doc:"first pause between two attempts; doubles with every further one"`
	BackoffMax             time.Duration `koanf:"backoff_max" min:"1ms" max:"24h" doc:"longest pause between two attempts"`
	Retention              time.Duration `koanf:"retention" min:"0" max:"876000h" doc:"how long considerations that ended are kept with their dialogues, by which a repeated request_id is recognised; 0 keeps them for ever"`
	FailedRetention        time.Duration `koanf:"failed_retention" min:"0" max:"876000h" doc:"how long considerations that failed are kept, so that they can be retried; 0 keeps them for ever"`
}

// Session is how conversations are kept. What a request says itself comes before max_messages, max_turns and max_chars.
type Session struct {
	Enabled          bool              `koanf:"enabled" doc:"whether conversations are kept at all"`
	RecordConsidered bool              `koanf:"record_considered" doc:"whether dialogues handed to ConsiderMemorizing are recorded in their session, too"`
	MemorizeEvery    int               `koanf:"memorize_every" min:"0" max:"1000" doc:"user messages in a session after which what was said is considered by itself; 0 never does"`
	Idle             time.Duration     `koanf:"idle" min:"1s" max:"720h" doc:"pause in a session after which what is left is considered, when memorize_every is not 0"`
	TTL              time.Duration     `koanf:"ttl" min:"1s" max:"87600h" doc:"pause after which the window expires and the next message begins a fresh one"`
	MaxMessages      int               `koanf:"max_messages" min:"1" max:"1000" doc:"messages in the window at most"`
	MaxTurns         int               `koanf:"max_turns" min:"1" max:"1000" doc:"turns in the window at most: what people say until they are answered, and the answer"`
	MaxChars         int               `koanf:"max_chars" min:"1" max:"1000000" doc:"characters said in the window at most"`
	FailureMaxChars  int               `koanf:"failure_max_chars" min:"0" max:"10000" doc:"longest reply without a tool call that is left out of window and consideration when it looks like a failure; 0 leaves none out"`
	ClaimMaxChars    int               `koanf:"claim_max_chars" min:"0" max:"10000" doc:"where a numbered list is shown: longest reply without a tool call that is left out of window and consideration when it claims a result, such as a URL, that neither a tool nor a list has; in Chinese characters, or three Latin letters each, without URLs; 0 leaves none out"`
	FailurePhrases   []string          `koanf:"failure_phrases" doc:"what a failure looks like, besides the built-in phrases"`
	SummaryMaxChars  int               `koanf:"summary_max_chars" min:"0" max:"100000" doc:"longest summary of what the window dropped, in characters; 0 makes none"`
	Labels           map[string]string `koanf:"labels" doc:"names of agents and users in the block for the prompt, by id, such as {ancestor_yan: 严氏先祖}"`
	Wordings         session.Wordings  `koanf:"wordings" each:"language"`
}

// History is what is kept of conversations beyond the window.
type History struct {
	Retention time.Duration `koanf:"retention" min:"0" max:"876000h" doc:"how long messages are kept; 0 keeps them for ever"`
	Vectors   int           `koanf:"vectors" min:"0" max:"100000" doc:"newest messages of a user that are embedded, so that they are also found by meaning"`
	Redact    bool          `koanf:"redact" doc:"whether secrets are taken out of messages before these are stored anywhere; otherwise history keeps what was sent"`
}

// Redact is which secrets are taken out of what is derived from dialogues, and of what remote models are given.
type Redact struct {
	Enabled bool          `koanf:"enabled" doc:"whether markers take the place of secrets in memories, summaries, digests, topics, traces, and what remote models are given"`
	Kinds   []redact.Kind `koanf:"kinds" doc:"secrets that are looked for: account_number, api_key, card_number, identity_number, password, private_key, token"`
	// DirectWrites is whether callers' own writes are redacted as well.
	DirectWrites bool `koanf:"direct_writes" doc:"whether secrets are also taken out of what CreateMemory, UpdateMemory, ImportMemories and the MCP tool remember write; otherwise these store what was sent"`
}

// Redactor takes the secrets out; nil when it is switched off. The configuration is valid.
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

// Digest is how the digests of users' days are made. The model is that of summary unless one is named.
type Digest struct {
	Enabled    bool             `koanf:"enabled" doc:"whether digests are made by themselves; SummarizeDay makes one in any case"`
	Interval   int              `koanf:"interval" min:"0" max:"100" doc:"messages of a user after which what was said is looked at for the digest; 0 does so only at the end of the user's day"`
	Provider   string           `koanf:"provider" embedded:"rules" follows:"summary" doc:"auto, rules, or a provider such as gemini, openai, deepseek or ollama; auto takes what summary has, unless model is provider/model"`
	Model      string           `koanf:"model" doc:"model of the provider, or provider/model; empty is the provider's usual one"`
	Endpoint   string           `koanf:"endpoint" doc:"base URL of the provider, or a full Gemini URL; empty is the provider's own"`
	APIKey     secret.Value     `koanf:"api_key" secret:"true" doc:"key of the provider; empty reads the provider's own variable, such as GEMINI_API_KEY"`
	APIKeyFile string           `koanf:"api_key_file" doc:"file that holds the key, instead of api_key"`
	Prompt     string           `koanf:"prompt" doc:"prompt with the placeholder {conversation}; empty is the built-in one"`
	MaxTokens  int              `koanf:"max_tokens" min:"100" max:"32000" doc:"most tokens of a conversation in one call, about, and of the model's answer; what is longer is looked at in pieces"`
	Generation Generation       `koanf:"generation"`
	Timeout    time.Duration    `koanf:"timeout" min:"100ms" max:"10m" doc:"longest wait for one call of the model"`
	Templates  digest.Templates `koanf:"templates" default:"a built-in one each for en and zh" doc:"Markdown of a digest by language, a text/template each (docs/design/conversations.md has the fields); en serves the languages that have none"`
	ExportDir  string           `koanf:"export_dir" doc:"folder into which digests and notebooks are written as Markdown, too, for people to read and add to; empty writes none"`
}

// Text is the model as other parts configure theirs.
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

// Notebook is the view of all memories of a user.
type Notebook struct {
	MaxEntries int `koanf:"max_entries" min:"1" max:"10000" doc:"memories that a notebook shows, the newest; more are stored"`
}

// Memories is how long memories are kept.
type Memories struct {
	MaxPerUser     int                 `koanf:"max_per_user" min:"0" max:"10000000" doc:"memories of a user at most, history included; beyond it those least likely to be needed are deleted, but none that is explicit; 0 is any number"`
	HalfLives      retention.HalfLives `koanf:"half_lives" doc:"after how long half of a memory's retention is gone, by kind, such as {plan: 720h, fact: 8760h}; kinds that are left out have the built-in ones (docs/design/forgetting.md)"`
	WithdrawnGrace time.Duration       `koanf:"withdrawn_grace" min:"0" max:"8760h" doc:"how long what a user asked to forget can be brought back before it is deleted for good; 0 deletes it at once"`
	ExpiredKeep    time.Duration       `koanf:"expired_keep" min:"0" max:"876000h" doc:"how long after they are over appointments and plans are kept as history; 0 keeps them for ever"`
	HistoryKeep    time.Duration       `koanf:"history_keep" min:"0" max:"876000h" doc:"how long after its end what was superseded is kept as history; 0 keeps it for ever"`
}

// Namespace is what holds for some namespaces only. What is nil is as for all.
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

// Fits reports whether this is about the namespace.
func (n Namespace) Fits(namespace string) bool {
	if below, ok := strings.CutSuffix(n.Name, "*"); ok {
		return strings.HasPrefix(namespace, below)
	}
	return n.Name == namespace
}

// ShareGroup is a list of groups that see what was learned in each other.
type ShareGroup struct {
	Namespace string   `koanf:"namespace"`
	Channels  []string `koanf:"channels"`
}

// Policy is who may see what.
func (c *Config) Policy() memory.Visibility {
	var shared []memory.SharedGroups
	for _, s := range c.ShareGroups {
		shared = append(shared, memory.SharedGroups{
			Namespace: memory.Scope{Namespace: s.Namespace}.Normalize().Namespace, Channels: s.Channels,
		})
	}
	return memory.NewVisibility(c.Visibility, shared)
}

// Trace is the record of calls.
type Trace struct {
	Retention  time.Duration `koanf:"retention" min:"0" max:"8760h" doc:"how long the records of calls are kept; 0 records none"`
	MaxRecords int           `koanf:"max_records" min:"1" max:"100000000" doc:"how many records of calls are kept at most"`
}

// NumberedLists is what is kept of numbered lists.
type NumberedLists struct {
	MaxItems int           `koanf:"max_items" min:"1" max:"100000" doc:"items of a registry at most; beyond it those last seen the longest ago are dropped. A call with more items than this keeps all of its own"`
	MaxAge   time.Duration `koanf:"max_age" min:"0" max:"876000h" doc:"how long an item is kept after it was last put, imported or asked about; 0 keeps it for ever"`
	ListTTL  time.Duration `koanf:"list_ttl" min:"0" max:"876000h" doc:"how long a list is being shown; 0 is until another is"`
}

// defaults is what is not set otherwise.
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
		Reconcile:       Reconcile{Enabled: true, Provider: "auto"},
		Rules: rules.Config{
			Threshold:         rules.DefaultThreshold,
			MaxStatements:     rules.DefaultMaxStatements,
			MaxStatementRunes: rules.DefaultMaxStatementRunes,
		},
		LLM:     LLM{Prices: usage.Prices{}},
		Breaker: Breaker{Failures: 5, OpenFor: 30 * time.Second},
		Index:   Index{BudgetMiB: 256},
		Retrieval: Retrieval{
			Budget:          800 * time.Millisecond,
			TopK:            3,
			MinRelevance:    0.02,
			MaxContextChars: 2000,
			NeighborWeight:  0.5,
			RecencyHalfLife: 720 * time.Hour,
			Agent:           "any",
			Prompts:         retrieve.DefaultPrompts(),
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
			Enabled: true, RecordConsidered: true, MemorizeEvery: 10, Idle: 30 * time.Minute, TTL: 24 * time.Hour,
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

// rulesDoc describes the keys below rules, whose Go type belongs to another package.
func rulesDoc(key string) string {
	switch key {
	case "rules.threshold":
		return "points from which something is remembered, 1 to 100"
	case "rules.max_statements":
		return "statements that one dialogue may yield about one speaker, 1 to 1000"
	case "rules.max_statement_runes":
		return "longest statement, in characters, 50 to 4000"
	case "rules.signals":
		return "changes and additions to the built-in signals, by name: weight (-100 to 100), off, kind, phrases by language"
	}
	return ""
}
