// Package providertest is a local HTTP server that implements the providers' protocols, Gemini's REST API and the OpenAI-compatible API,
// with the faults that occur in practice.
package providertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Part is the purpose of a request.
type Part string

// The parts.
const (
	Embedding Part = "embedding"
	Decision  Part = "decision"
	Summary   Part = "summary"
	Digest    Part = "digest"
)

// Fault is a way in which a request fails.
type Fault string

// The faults. NoFault means a good answer.
const (
	NoFault         Fault = ""
	RateLimit       Fault = "429 with a delay of RetryDelay"
	DayLimit        Fault = "429 with a delay of a day"
	ServerError     Fault = "500"
	Hang            Fault = "no answer"
	Reset           Fault = "connection reset"
	BadKey          Fault = "401"
	BadRequest      Fault = "400"
	BrokenJSON      Fault = "an answer that is not JSON"
	NoCandidates    Fault = "no candidates"
	Blocked         Fault = "blocked for safety"
	UnknownFinish   Fault = "an unknown finish reason"
	FewerDimensions Fault = "vectors of another size"
	SilentRateLimit Fault = "429 that does not say when to try again"
	HalfAnswer      Fault = "an answer that breaks off with its connection"
	CutAnswer       Fault = "an answer that ends in the middle"
	Page            Fault = "a proxy's page"
	NotNumbers      Fault = "vectors with NaN in them"
	NoVectors       Fault = "no vectors"
	EmptyVectors    Fault = "vectors without numbers"
)

// RetryDelay is what RateLimit asks for.
const RetryDelay = "1s"

// Request is a received request.
type Request struct {
	Part   Part
	Path   string
	Query  string
	Header http.Header
	Body   string
}

// Server answers like a provider: every dialogue is worth remembering, with Statement as its summary, and vectors are derived from the
// words of texts.
type Server struct {
	URL string

	mu         sync.Mutex
	faults     map[Part]Fault
	limits     map[Part]*limit
	requests   []Request
	dimensions int
	statement  string
	idle       string // text of dialogues that are not worth remembering
	input      int
	output     int
	digest     string // the answer for digests; "" means the default
	extraction string // the answer for extractions; "" means the default
	arrived    chan Request
	closed     chan struct{}
}

// Start returns a server that runs until the test ends.
func Start(t testing.TB, dimensions int) *Server { return StartOn(t, nil, dimensions) }

// StartOn returns a server on a listener, such as one in memory; nil means a free loopback port.
func StartOn(t testing.TB, listener net.Listener, dimensions int) *Server {
	s := &Server{
		faults: map[Part]Fault{}, limits: map[Part]*limit{}, dimensions: dimensions, statement: "用户喜欢喝茶", input: 100, output: 10,
		arrived: make(chan Request, 10_000), closed: make(chan struct{}),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if listener != nil {
		_ = server.Listener.Close() // httptest's own listener
		server.Listener = listener
	}
	server.Start()
	s.URL = server.URL
	t.Cleanup(func() {
		close(s.closed)
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// Fail makes requests for the parts fail with the fault from now on.
func (s *Server) Fail(fault Fault, parts ...Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range parts {
		s.faults[part] = fault
		delete(s.limits, part)
	}
}

// FailAfter makes requests for the part fail with the fault after the given number of good answers.
func (s *Server) FailAfter(answers int, fault Fault, part Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[part] = &limit{answers, fault}
}

// limit is how many requests succeed before the fault.
type limit struct {
	left  int
	fault Fault
}

// Say sets the statement that summarizes every dialogue.
func (s *Server) Say(statement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statement = statement
}

// Ignore makes dialogues with these words in the new messages not worth remembering.
func (s *Server) Ignore(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = words
}

// Digest sets the answer for every digest, as JSON.
func (s *Server) Digest(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digest = answer
}

// Extraction sets the text of the answer for every extraction.
func (s *Server) Extraction(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extraction = answer
}

// Take sets the input and output tokens of each text model call; if both are 0, answers do not report them.
func (s *Server) Take(input, output int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.input, s.output = input, output
}

// Arrived delivers requests as they arrive.
func (s *Server) Arrived() <-chan Request { return s.arrived }

// NewMessages returns the part of a request about a dialogue that holds its new messages, without those before them. The whole request is
// returned if it has no such part.
func NewMessages(body []byte) []byte {
	if at := bytes.LastIndex(body, []byte("New messages:")); at >= 0 {
		return body[at:]
	}
	return body
}

// Requests returns the requests so far for a part.
func (s *Server) Requests(part Part) (list []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.Part == part {
			list = append(list, r)
		}
	}
	return list
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // an answer would be an empty 200
	}
	request := Request{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Body: string(body), Part: Summary}
	switch {
	case strings.Contains(r.URL.Path, "mbed"): // batchEmbedContents, embeddings
		request.Part = Embedding
	case strings.Contains(request.Body, "should_remember"):
		request.Part = Decision
	case strings.Contains(request.Body, "what the digest of the user"):
		request.Part = Digest
	}
	gemini := strings.HasPrefix(r.URL.Path, "/v1beta/")
	s.mu.Lock()
	s.requests = append(s.requests, request)
	switch l := s.limits[request.Part]; {
	case l == nil:
	case l.left > 0:
		l.left--
	default:
		s.faults[request.Part] = l.fault
		delete(s.limits, request.Part)
	}
	fault, dimensions, statement, digest := s.faults[request.Part], s.dimensions, s.statement, s.digest
	input, output, extraction := s.input, s.output, s.extraction
	idle := s.idle != "" && strings.Contains(string(NewMessages([]byte(request.Body))), s.idle)
	s.mu.Unlock()
	s.arrived <- request

	switch fault {
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		panic(http.ErrAbortHandler) // returning would send an answer
	case Reset:
		if hijacker, ok := w.(http.Hijacker); ok {
			if conn, _, err := hijacker.Hijack(); err == nil {
				_ = conn.Close()
			}
		}
		panic(http.ErrAbortHandler) // returning would send an answer
	case RateLimit, DayLimit, SilentRateLimit, ServerError, BadKey, BadRequest:
		refuse(w, gemini, fault)
		return
	case Page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Welcome to our network! Please log in.</body></html>")
		return
	case FewerDimensions:
		dimensions = 3
	case EmptyVectors:
		dimensions = 0
	default:
	}
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch {
	case request.Part == Embedding && gemini:
		answer = geminiEmbeddings(request.Body, dimensions)
	case request.Part == Embedding:
		answer = openAIEmbeddings(request.Body, dimensions)
	case gemini:
		answer = geminiText(textFor(request, statement, digest, extraction, fault, idle), fault, input, output)
	default:
		answer = openAIText(textFor(request, statement, digest, extraction, fault, idle), fault, input, output)
	}
	garble(w, answer, fault)
}

// garble writes an answer, damaged if the fault is about its form.
func garble(w http.ResponseWriter, answer any, fault Fault) {
	body, err := json.Marshal(answer)
	if err != nil {
		return
	}
	switch fault { //nolint:exhaustive // the others do not affect the form
	case HalfAnswer:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case CutAnswer:
		body = body[:len(body)/2]
	case NotNumbers:
		body = firstNumber.ReplaceAll(body, []byte(`"$1":[NaN`))
	case NoVectors:
		body = vectorList.ReplaceAll(body, []byte(`"$1":[]`))
	}
	_, _ = w.Write(body) // the client may be gone
}

// Positions of the vectors and their first numbers in either protocol.
var (
	vectorList  = regexp.MustCompile(`"(data|embeddings)":\[.*\]`)
	firstNumber = regexp.MustCompile(`"(embedding|values)":\[[^,\]]*`)
)

func refuse(w http.ResponseWriter, gemini bool, fault Fault) {
	status := map[Fault]int{RateLimit: 429, DayLimit: 429, SilentRateLimit: 429, ServerError: 500, BadKey: 401, BadRequest: 400}[fault]
	w.Header().Set("Content-Type", "application/json")
	failure := map[string]any{"code": status, "message": "the provider says " + string(fault), "status": "FAILED"}
	if delay, limited := map[Fault]string{RateLimit: RetryDelay, DayLimit: "86400s"}[fault]; limited {
		if gemini {
			failure["status"] = "RESOURCE_EXHAUSTED"
			failure["details"] = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}}
		} else {
			w.Header().Set("Retry-After", strings.TrimSuffix(delay, "s"))
		}
	}
	if !gemini {
		failure["code"] = fmt.Sprint(status)
		failure["type"] = "error"
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": failure})
}

// textFor returns the answer of a text model: the dialogue is worth remembering, and its statement is new.
func textFor(request Request, statement, digest, extraction string, fault Fault, idle bool) string {
	part := request.Part
	switch {
	case fault == BrokenJSON:
		return "Certainly! Here is what I think: {"
	case part == Decision && idle:
		return `{"should_remember": false, "reason": "idle talk"}`
	case part == Decision:
		return "```json\n{\"should_remember\": true, \"reason\": \"a lasting preference\"}\n```"
	}
	if part == Digest && digest != "" {
		return digest
	}
	if part == Digest {
		return `{"topics": ["tea"], "issues": [{"question": "How long does it steep?", "solution": "Three minutes.", "messages": ["m0", "m1"]}], "insights": []}`
	}
	if extraction != "" {
		return extraction
	}
	if idle {
		return `{"ops": []}`
	}
	text, err := json.Marshal(map[string]any{"ops": []any{map[string]any{
		"op": "add", "ids": []string{}, "text": statement, "kind": "preference", "importance": 0.7, "about": "user", "holds": "now",
		"until": "", "asked": false, "from": []string{},
	}}})
	if err != nil {
		return ""
	}
	return string(text)
}

func geminiText(text string, fault Fault, input, output int) any {
	candidate := map[string]any{
		"content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": text}}}, "finishReason": "STOP", "index": 0,
	}
	answer := map[string]any{
		"candidates":    []any{candidate},
		"usageMetadata": map[string]any{"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output},
		"modelVersion":  "a field that the SDK does not know",
	}
	switch fault { //nolint:exhaustive // the others do not affect the form
	case NoCandidates:
		answer["candidates"] = []any{}
	case Blocked:
		delete(answer, "candidates")
		answer["promptFeedback"] = map[string]any{"blockReason": "SAFETY"}
	case UnknownFinish:
		candidate["finishReason"] = "A_REASON_OF_NEXT_YEAR"
	}
	return answer
}

func openAIText(text string, fault Fault, input, output int) any {
	choice := map[string]any{
		"index": 0, "message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop",
	}
	answer := map[string]any{
		"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []any{choice},
		"usage": map[string]any{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
	}
	switch fault { //nolint:exhaustive // the others do not affect the form
	case NoCandidates:
		answer["choices"] = []any{}
	case Blocked:
		choice["finish_reason"] = "content_filter"
	case UnknownFinish:
		choice["finish_reason"] = "a_reason_of_next_year"
	}
	return answer
}

func geminiEmbeddings(body string, dimensions int) any {
	var request struct {
		Requests []struct {
			Content struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
		} `json:"requests"`
	}
	if json.Unmarshal([]byte(body), &request) != nil {
		return nil
	}
	embeddings := []any{}
	for _, r := range request.Requests {
		var text strings.Builder
		for _, part := range r.Content.Parts {
			text.WriteString(part.Text)
		}
		embeddings = append(embeddings, map[string]any{"values": Vector(text.String(), dimensions)})
	}
	return map[string]any{"embeddings": embeddings}
}

func openAIEmbeddings(body string, dimensions int) any {
	var request struct {
		Input []string `json:"input"`
	}
	if json.Unmarshal([]byte(body), &request) != nil {
		return nil
	}
	data := []any{}
	for i, text := range request.Input {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": Vector(text, dimensions)})
	}
	return map[string]any{"object": "list", "model": "m", "data": data, "usage": map[string]any{"prompt_tokens": 1, "total_tokens": 1}}
}

// Vector derives a vector from a text's characters. Texts that share characters have similar vectors.
func Vector(text string, dimensions int) []float64 {
	vector := make([]float64, dimensions)
	if dimensions == 0 {
		return vector
	}
	vector[0] = 0.01 // never all zeros
	for _, r := range text {
		sum := sha256.Sum256([]byte(string(r)))
		vector[(int(sum[0])<<8+int(sum[1]))%dimensions]++
	}
	return vector
}
