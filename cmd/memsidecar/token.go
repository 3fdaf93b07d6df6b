package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/access"
)

type tokenCommands struct {
	Create tokenCreate `cmd:"" help:"Create a token, print it once, and store its hash."`
	List   tokenList   `cmd:"" help:"List the tokens."`
	Revoke tokenRevoke `cmd:"" help:"Revoke a token."`
}

// tokensFile selects the tokens file.
type tokensFile struct {
	File string `placeholder:"FILE" complete:"file" help:"Token file; by default auth.tokens_file of the configuration."`
}

func (f tokensFile) path(m *Main, c *commands) (string, error) {
	if f.File != "" {
		return f.File, nil
	}
	sources := *c
	// These mistakes do not matter here, and the file may be the setting that is still missing.
	sources.DataDir, sources.Insecure = cmp.Or(c.DataDir, "."), true
	loaded, err := m.load(&sources)
	if err != nil {
		return "", err
	}
	if loaded.Config.Auth.TokensFile == "" {
		return "", usageError{errors.New("name the token file with --file, or set auth.tokens_file")}
	}
	return loaded.Config.Auth.TokensFile, nil
}

type tokenCreate struct {
	Namespace string `short:"n" placeholder:"PATH" required:"" help:"Namespace that the token reaches; a/b/* is all below a/b, and * all."`
	Access    string `enum:"read,write,admin" default:"write" placeholder:"LEVEL" help:"read, write (which includes read) or admin (all)."`
	Expires   string `placeholder:"TIME" help:"When it expires: a duration such as 90d or 12h, or a time such as 2027-02-19T00:00:00Z. By default never."`
	ID        string `name:"id" placeholder:"ID" help:"Name of the token, to list and revoke it. By default a random one."`

	tokensFile
}

// Help implements kong.HelpProvider.
func (tokenCreate) Help() string {
	return `Only its hash is stored, so the token cannot be shown again. A running sidecar accepts it within a second.

Examples:

    memsidecar token create --namespace default --file tokens
    memsidecar token create --namespace 'yantian/*' --access read --expires 90d --id dashboard`
}

// Run makes a token.
func (t tokenCreate) Run(m *Main, c *commands, p *cli.Program) error {
	now := time.Now().Truncate(time.Second).UTC()
	expires, err := parseExpiry(t.Expires, now)
	if err != nil {
		return usageError{err}
	}
	level, err := access.ParseLevel(t.Access)
	if err != nil {
		return usageError{err}
	}
	token := access.NewToken()
	id := cmp.Or(t.ID, "t-"+now.Format("20060102")+"-"+strings.ToLower(access.NewID()))
	grant := access.Grant{ID: id, Namespace: t.Namespace, Level: level, Expires: expires}
	if err := grant.Check(); err != nil {
		return usageError{err}
	}
	path, err := t.path(m, c)
	if err != nil {
		return err
	}
	if err := access.Add(path, access.NewEntry(grant, token)); err != nil {
		return usageError{err}
	}
	p.Note("added token %s to %s; it is shown only once", id, path)
	_, err = fmt.Fprintln(m.Stdout, token)
	return err
}

// parseExpiry reads a time, or a duration, which may be in days.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if !at.After(now) {
			return at, fmt.Errorf("--expires %s is in the past", text)
		}
		return at, nil
	}
	after, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if n, err = strconv.Atoi(days); err == nil && n < 36_500 {
			after = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || after <= 0 {
		return now, fmt.Errorf("--expires %s: write a duration such as 90d or 12h, or a time such as 2027-02-19T00:00:00Z", text)
	}
	return now.Add(after), nil
}

type tokenList struct {
	tokensFile
}

// Run lists the tokens.
func (t tokenList) Run(m *Main, c *commands, p *cli.Program) error {
	path, err := t.path(m, c)
	if err != nil {
		return err
	}
	entries, err := access.ReadFile(path)
	if err != nil {
		return usageError{err}
	}
	var rows [][]string
	for _, e := range entries {
		expires := "never"
		if !e.Expires.IsZero() {
			expires = e.Expires.UTC().Format(time.RFC3339)
		}
		if !e.Expires.IsZero() && !e.Expires.After(time.Now()) {
			expires += " (expired)"
		}
		rows = append(rows, []string{e.ID, e.Namespace, e.Level.String(), expires})
	}
	p.Table([]string{"id", "namespace", "access", "expires"}, 4, rows)
	return nil
}

type tokenRevoke struct {
	ID string `arg:"" help:"The token's id, as token list shows it."`

	tokensFile
}

// Run revokes a token.
func (t tokenRevoke) Run(m *Main, c *commands, p *cli.Program) error {
	path, err := t.path(m, c)
	if err != nil {
		return err
	}
	switch err := access.Remove(path, t.ID); {
	case errors.Is(err, access.ErrNoToken):
		return &cli.Error{Code: cli.ExitNotFound, Message: err.Error()}
	case err != nil:
		return usageError{err}
	}
	p.Note("revoked token %s; a running sidecar refuses it within a second", t.ID)
	return nil
}
