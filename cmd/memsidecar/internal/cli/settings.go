package cli

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type settingsCommands struct {
	Get settingsGet `cmd:"" help:"Show a user's settings."`
	Set settingsSet `cmd:"" help:"Change a user's settings."`
}

type settingsGet struct {
	person
	calls
	output
}

// Help implements kong.HelpProvider.
func (settingsGet) Help() string {
	return `Examples:

    memsidecar settings get -u alice`
}

// Run shows them.
func (c settingsGet) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.userScope)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetUserSettings(ctx, &memsidecarv1.GetUserSettingsRequest{Scope: scope})
	if err != nil {
		return err
	}
	return c.show(p, resp.GetSettings(), func(s *screen) { s.settings(resp.GetSettings()) })
}

func (s *screen) settings(settings *memsidecarv1.UserSettings) {
	paused := cell{"no", green}
	if settings.GetPaused() {
		paused = cell{"yes: nothing is remembered", yellow}
	}
	s.fields(
		"time zone",
		cmp.Or(settings.GetTimeZone(), "as configured"),
		"language",
		cmp.Or(settings.GetLanguage(), "that of the memories"),
		"paused",
		paused,
		"considered",
		everyName(settings.MemorizeEvery != nil, settings.GetMemorizeEvery(), "as configured"),
		"changed",
		cmp.Or(date(settings.GetUpdateTime()), "never"),
	)
}

type settingsSet struct {
	TimeZone      *string     `placeholder:"ZONE" help:"IANA time zone, for example Asia/Shanghai; \"\" is the configured one."`
	Language      *string     `placeholder:"LANGUAGE" help:"BCP 47 language of the prompt block, for example zh; \"\" is the language of the memories."`
	Paused        *bool       `negatable:"" help:"Stop remembering anything of this user; --no-paused resumes."`
	MemorizeEvery intervalArg `placeholder:"N" help:"Consider a session after every N messages of this user; 0 is never, \"default\" is as configured."`

	person
	calls
	output
}

// Help implements kong.HelpProvider.
func (settingsSet) Help() string {
	return `Only what is given is changed.

Examples:

    memsidecar settings set -u 小林 --time-zone Asia/Shanghai --language zh
    memsidecar settings set -u alice --paused`
}

// Run changes the given settings and shows all.
func (c settingsSet) Run(ctx context.Context, p *Program) error {
	scope, err := c.userScope()
	if err != nil {
		return err
	}
	request := &memsidecarv1.UpdateUserSettingsRequest{
		Scope:      scope,
		Settings:   &memsidecarv1.UserSettings{},
		UpdateMask: &fieldmaskpb.FieldMask{},
	}
	change := func(field string) { request.UpdateMask.Paths = append(request.UpdateMask.Paths, field) }
	if c.TimeZone != nil {
		request.Settings.TimeZone = *c.TimeZone
		change("time_zone")
	}
	if c.Language != nil {
		request.Settings.Language = *c.Language
		change("language")
	}
	if c.Paused != nil {
		request.Settings.Paused = *c.Paused
		change("paused")
	}
	if c.MemorizeEvery.given {
		request.Settings.MemorizeEvery = c.MemorizeEvery.n
		change("memorize_every")
	}
	if len(request.GetUpdateMask().GetPaths()) == 0 {
		return usage("say what to change with --time-zone, --language, --paused, --no-paused or --memorize-every")
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.UpdateUserSettings(ctx, request)
	if err != nil {
		return err
	}
	return c.show(p, resp.GetSettings(), func(s *screen) { s.settings(resp.GetSettings()) })
}
