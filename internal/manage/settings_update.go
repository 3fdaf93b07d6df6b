package manage

import (
	"context"
	"time"

	"golang.org/x/text/language"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Settings reads and changes the settings of users.
type Settings struct {
	Store interface {
		Get(ctx context.Context, user memory.User) (memory.Settings, error)
		Update(ctx context.Context, user memory.User, change func(*memory.Settings)) (memory.Settings, error)
	}
}

// SettingsPatch is a change of a user's settings. Nil fields stay unchanged, and are not checked.
type SettingsPatch struct {
	TimeZone, Language *string
	Paused             *bool
	MemorizeEvery      **int // an inner nil removes it
}

// Get returns a user's settings, or the zero value.
func (s *Settings) Get(ctx context.Context, user memory.User) (memory.Settings, error) {
	return s.Store.Get(ctx, user)
}

// Update changes a user's settings and returns them. wrong are the violations found before.
func (s *Settings) Update(ctx context.Context, user memory.User, p SettingsPatch, wrong memory.Violations) (memory.Settings, error) {
	if p.TimeZone != nil {
		// LoadLocation accepts "Local", which is the zone of this machine and not of a user.
		if _, err := time.LoadLocation(*p.TimeZone); err != nil || *p.TimeZone == "Local" {
			wrong.Add("settings.time_zone", "is not an IANA time zone such as \"Asia/Shanghai\"")
		}
	}
	if p.Language != nil && *p.Language != "" {
		tag, err := language.Parse(*p.Language)
		if err != nil {
			wrong.Add("settings.language", "is not a BCP 47 language such as \"zh\" or \"en\"")
		}
		p.Language = new(tag.String()) // zh_CN becomes zh-CN
	}
	if p.MemorizeEvery != nil {
		wrong.Check("settings.memorize_every", memory.MemorizeEveryProblem(*p.MemorizeEvery))
	}
	if err := wrong.Err(); err != nil {
		return memory.Settings{}, err
	}
	return s.Store.Update(ctx, user, func(settings *memory.Settings) {
		if p.TimeZone != nil {
			settings.TimeZone = *p.TimeZone
		}
		if p.Language != nil {
			settings.Language = *p.Language
		}
		if p.Paused != nil {
			settings.Paused = *p.Paused
		}
		if p.MemorizeEvery != nil {
			settings.MemorizeEvery = *p.MemorizeEvery
		}
		settings.UpdatedAt = time.Now().Truncate(time.Microsecond)
	})
}
