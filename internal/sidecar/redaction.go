package sidecar

import (
	"context"
	"slices"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/session"
)

// The decorators that take secrets out of what summaries, digests and topics are made of. The nil Redactor changes nothing.
// Considerations and traces take them out themselves, because they say what there was.

// redactedSummaries are summaries of conversations.
type redactedSummaries struct {
	session.Summarizer
	redactor *redact.Redactor
}

// Summarize implements session.Summarizer.
func (r redactedSummaries) Summarize(ctx context.Context, s session.Summarizing) (string, error) {
	s.Previous = r.redactor.Text(s.Previous) // which may be of before redaction was switched on
	s.Lines = slices.Clone(s.Lines)
	for i := range s.Lines {
		s.Lines[i].Content = r.redactor.Text(s.Lines[i].Content)
	}
	return r.Summarizer.Summarize(ctx, s)
}

// redactedFindings are what digests tell.
type redactedFindings struct {
	digest.Extractor
	redactor *redact.Redactor
}

// Extract implements digest.Extractor.
func (r redactedFindings) Extract(ctx context.Context, p digest.Piece) ([]digest.Finding, error) {
	p.Messages, p.Known = slices.Clone(p.Messages), slices.Clone(p.Known)
	for i := range p.Messages {
		p.Messages[i].Message = r.redactor.Message(p.Messages[i].Message)
	}
	for i := range p.Known {
		p.Known[i] = r.redactor.Text(p.Known[i])
	}
	return r.Extractor.Extract(ctx, p)
}

// redactedSource is what topics are counted in.
type redactedSource struct {
	topics.Source
	redactor *redact.Redactor
}

// Messages implements topics.Source.
func (r redactedSource) Messages(ctx context.Context, q topics.Query) (messages []topics.Message, truncated bool, err error) {
	messages, truncated, err = r.Source.Messages(ctx, q)
	for i := range messages {
		messages[i].Text = r.redactor.Without(messages[i].Text)
	}
	return messages, truncated, err
}

// writesRedactor takes secrets out of memories that callers write themselves; nil when these are stored as they were sent.
func writesRedactor(cfg config.Config, redactor *redact.Redactor) *redact.Redactor {
	if !cfg.Redact.DirectWrites {
		return nil
	}
	return redactor
}

// historyRedactor takes secrets out of messages before they are stored; nil when they are stored as they were sent.
func historyRedactor(cfg config.Config, redactor *redact.Redactor) *redact.Redactor {
	if !cfg.History.Redact {
		return nil
	}
	return redactor
}
