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

// Decorators that redact the input of summaries, digests and topics. The nil Redactor changes nothing.
// Considerations and traces redact themselves, because they report the kinds of secrets.

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

// redactedFindings redacts the findings of digests.
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

// redactedSource redacts the messages of topics.
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

// writesRedactor redacts memories that callers write directly; nil if they are stored unchanged.
func writesRedactor(cfg config.Config, redactor *redact.Redactor) *redact.Redactor {
	if !cfg.Redact.DirectWrites {
		return nil
	}
	return redactor
}

// historyRedactor redacts messages before they are stored; nil if they are stored unchanged.
func historyRedactor(cfg config.Config, redactor *redact.Redactor) *redact.Redactor {
	if !cfg.History.Redact {
		return nil
	}
	return redactor
}
