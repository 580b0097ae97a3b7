package score_test

import "maps"

func init() {
	maps.Copy(freeText, map[string]string{
		"ethernet.interface": "a name, of a shape that Check holds",
		"ethernet.name":      "a name for people; nobody reads more into it",
		"wifi.country":       "two letters, of a shape that Check holds",
		"wifi.interface":     "a name, of a shape that Check holds",
		"wifi.name":          "a name for people; nobody reads more into it",
	})
}
