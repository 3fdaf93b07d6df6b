package lexical

// names are those of the languages that Language tells apart.
var names = map[string]string{
	"zh": "Chinese (中文)", "en": "English", "ja": "Japanese (日本語)", "ko": "Korean (한국어)", "ru": "Russian", "uk": "Ukrainian",
	"th": "Thai", "ar": "Arabic", "fa": "Persian", "he": "Hebrew", "el": "Greek", "hi": "Hindi", "fr": "French", "es": "Spanish",
	"pt": "Portuguese", "de": "German", "it": "Italian", "nl": "Dutch", "vi": "Vietnamese",
}

// Name is the English name of a language that Language returns, for prompts; "" for Undetermined and others.
func Name(language string) string { return names[language] }
