package client

import "encoding/json"

// Repeated lists the calls that are retried.
func Repeated() (methods []string) {
	var parsed config
	if err := json.Unmarshal([]byte(serviceConfig()), &parsed); err != nil {
		panic(err)
	}
	for _, group := range parsed.MethodConfig {
		for _, name := range group.Name {
			methods = append(methods, name.Method)
		}
	}
	return methods
}
