package config

import (
	"path/filepath"
	"strings"
)

// dataDir returns the platform's folder for the program's data, or "" when the environment names none: a service may have no home
// folder. On Linux it follows https://specifications.freedesktop.org/basedir-spec.
func dataDir(goos string, environ []string) string {
	var base string
	switch goos {
	case "windows":
		base = Getenv(environ, "LOCALAPPDATA")
	case "darwin":
		if home := Getenv(environ, "HOME"); home != "" {
			base = filepath.Join(home, "Library", "Application Support")
		}
	default:
		if xdg := Getenv(environ, "XDG_DATA_HOME"); filepath.IsAbs(xdg) {
			base = xdg
		} else if home := Getenv(environ, "HOME"); home != "" {
			base = filepath.Join(home, ".local", "share")
		}
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, "memsidecar")
}

// Getenv returns the value of a variable in an environment as os.Environ returns it; "" when it is not set.
func Getenv(environ []string, name string) string {
	value := ""
	for _, v := range environ {
		if rest, ok := strings.CutPrefix(v, name+"="); ok {
			value = rest
		}
	}
	return value
}
