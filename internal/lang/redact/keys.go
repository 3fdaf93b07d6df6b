package redact

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// issued are keys with a prefix that names their provider. Providers publish these prefixes so that keys can be found. The lengths are
// lower bounds, because formats grow.
var issued = []struct {
	prefixes []string // one of them is in every text that the pattern fits: looked for first, which is fast
	pattern  *lazyregexp.Regexp
}{
	{[]string{"sk-"}, key(`sk-[A-Za-z0-9_-]{20,}`)},                                  // OpenAI, Anthropic, DeepSeek and many like them
	{[]string{"AKIA", "ASIA", "ABIA", "ACCA"}, key(`A(?:KI|SI|BI|CC)A[A-Z0-9]{16}`)}, // AWS
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, key(`gh[pousr]_[A-Za-z0-9]{30,}`)},
	{[]string{"github_pat_"}, key(`github_pat_[A-Za-z0-9_]{40,}`)},
	{[]string{"glpat-", "glptt-", "gldt-", "glrt-"}, key(`gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_.-]{20,}`)},
	// Slack
	{[]string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe", "xapp-"}, key(`(?:xox[abeprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{10,}`)},
	{[]string{"hooks.slack.com"}, key(`hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}`)},
	{[]string{"discord"}, key(`discord(?:app)?\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{40,}`)},
	{[]string{"AIza"}, key(`AIza[A-Za-z0-9_-]{35}`)}, // Google
	{[]string{"GOCSPX-"}, key(`GOCSPX-[A-Za-z0-9_-]{20,}`)},
	{[]string{"ya29."}, key(`ya29\.[A-Za-z0-9_-]{20,}`)},
	{[]string{"_live_", "_test_"}, key(`[srp]k_(?:live|test)_[A-Za-z0-9]{16,}`)}, // Stripe
	{[]string{"whsec_"}, key(`whsec_[A-Za-z0-9+/=]{24,}`)},
	{[]string{"SG."}, key(`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)}, // SendGrid
	{[]string{"hf_"}, key(`hf_[A-Za-z0-9]{30,}`)},                        // Hugging Face
	{[]string{"gsk_", "xai-", "pplx-", "tvly-"}, key(`(?:gsk_|xai-|pplx-|tvly-)[A-Za-z0-9_-]{20,}`)},
	{[]string{"r8_"}, key(`r8_[A-Za-z0-9]{30,}`)},
	{[]string{"npm_"}, key(`npm_[A-Za-z0-9]{30,}`)},
	{[]string{"pypi-"}, key(`pypi-[A-Za-z0-9_-]{40,}`)},
	{[]string{"dop_v1_", "doo_v1_"}, key(`do[op]_v1_[a-f0-9]{40,}`)},                        // DigitalOcean
	{[]string{"LTAI"}, key(`LTAI[A-Za-z0-9]{12,26}`)},                                       // Alibaba Cloud
	{[]string{"AKID"}, key(`AKID[A-Za-z0-9]{13,40}`)},                                       // Tencent Cloud
	{[]string{"AKLT"}, key(`AKLT[A-Za-z0-9_-]{20,60}`)},                                     // Volcengine
	{[]string{":AA"}, key(`[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}`)},                              // Telegram bots
	{[]string{"."}, key(`[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`)}, // Discord bots
	{[]string{"shpat_", "shpca_", "shppa_", "shpss_"}, key(`shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`)},
	{[]string{"ntn_", "secret_"}, key(`(?:ntn|secret)_[A-Za-z0-9]{40,}`)}, // Notion
	{[]string{"lin_api_"}, key(`lin_api_[A-Za-z0-9]{30,}`)},
	{[]string{"dapi"}, key(`dapi[a-f0-9]{32}`)}, // Databricks
	{[]string{"hvs.", "hvb."}, key(`hv[sb]\.[A-Za-z0-9_-]{20,}`)},
	{[]string{"AGE-SECRET-KEY-"}, key(`AGE-SECRET-KEY-1[A-Z0-9]{50,}`)},
	{[]string{"SK", "AC"}, key(`SK[a-f0-9]{32}`)}, // Twilio
	{[]string{"key-"}, key(`key-[a-f0-9]{32}`)},   // Mailgun
	{[]string{"xkeysib-"}, key(`xkeysib-[a-f0-9]{40,}[A-Za-z0-9-]*`)},
	{[]string{"pscale_"}, key(`pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}`)},
	{[]string{"NRAK-"}, key(`NRAK-[A-Z0-9a-z]{27}`)}, // New Relic
	{[]string{"nfp_"}, key(`nfp_[A-Za-z0-9]{30,}`)},
}

// key is the pattern of a key that no letter, digit or underscore precedes.
func key(pattern string) *lazyregexp.Regexp { return lazyregexp.New(`\b` + pattern) }

// shortestKey is how many ASCII characters without a blank every key has, and hardly anything that people say.
const shortestKey = 16

func hasRun(text string, length int) bool {
	n := 0
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' {
			n = 0
		} else if n++; n >= length {
			return true
		}
	}
	return false
}

func apiKeys(text string) (found []span) {
	if !hasRun(text, shortestKey) {
		return nil
	}
	for _, i := range issued {
		if !containsAny(text, i.prefixes) {
			continue
		}
		for _, at := range i.pattern.FindAllStringIndex(text, -1) {
			if opaque(text[at[0]:at[1]]) {
				found = append(found, span{start: at[0], end: at[1], kind: APIKey})
			}
		}
	}
	return found
}

var (
	webToken = lazyregexp.New(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`)
	bearer   = lazyregexp.New(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9_\-.~+/]{16,}=*)`)
)

func tokens(text, lower string) (found []span) {
	if !hasRun(text, shortestKey) {
		return nil
	}
	if strings.Contains(text, "eyJ") {
		for _, at := range webToken.FindAllStringIndex(text, -1) {
			found = append(found, span{start: at[0], end: at[1], kind: Token})
		}
	}
	if !containsAny(lower, []string{"bearer", "basic"}) {
		return found
	}
	for _, at := range bearer.FindAllStringSubmatchIndex(text, -1) {
		value := strings.TrimRight(text[at[2]:at[3]], ".")
		if opaque(value) {
			found = append(found, span{start: at[2], end: at[2] + len(value), kind: Token})
		}
	}
	return found
}

var (
	pemBegin = lazyregexp.New(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----`)
	pemEnd   = lazyregexp.New(`^-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----`)
	// A block that was cut off is one all the same. In JSON the line breaks are written \n.
	pemRest = lazyregexp.New(`^[A-Za-z0-9+/=\s\\:,.>|#*-]*`)
)

// longestPEM is how far from its beginning the end of a block is looked for: 16,384 bits take 13 KB.
const longestPEM = 16 << 10

func privateKeys(text string) (found []span) {
	if !strings.Contains(text, "PRIVATE KEY") {
		return nil
	}
	last := 0
	for _, at := range pemBegin.FindAllStringIndex(text, -1) {
		if at[0] < last {
			continue
		}
		rest := text[at[1]:min(len(text), at[1]+longestPEM)]
		last = at[1] + pemRest.FindStringIndex(rest)[1]
		if i := strings.Index(rest, "-----END "); i >= 0 {
			if end := pemEnd.FindStringIndex(rest[i:]); end != nil {
				last = at[1] + i + end[1]
			}
		}
		found = append(found, span{start: at[0], end: last, kind: PrivateKey})
	}
	return found
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
