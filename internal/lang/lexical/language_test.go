package lexical_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		// Chinese, also mixed with English
		"用户喜欢喝咖啡":                                      "zh",
		"用戶喜歡喝咖啡":                                      "zh",
		"我在用Vue做frontend":                              "zh",
		"今天deploy了React app到production":                "zh",
		"用户喜欢 The Legend of Zelda: Breath of the Wild": "zh",
		"iPhone 15 Pro Max 怎么样":                        "zh",
		"React Native 和 Flutter 哪个好":                   "zh",
		"用户喜欢アニメ":                                      "zh",
		"用户喜欢玩ドラゴンクエスト":                                "zh",
		"鲜の每日":                                         "zh",
		"好":                                            "zh",
		"2023年5月4日":                                    "zh",
		"我爱你 ❤️":                                       "zh",
		"用户的邮箱是 someone@example.com，网址是 https://example.com/a/b/c/d": "zh",
		// English, also short, also mixed with Chinese
		"hello":                 "en",
		"I like tea":            "en",
		"pizza":                 "en",
		"OK!":                   "en",
		"What's my dog's name?": "en",
		"My name is 王小明":        "en",
		"I love 北京":             "en",
		"The user lives in 北京 and works at 阿里巴巴": "en",
		"What does 你好 mean?":                     "en",
		"She ordered a café au lait":             "en",
		"Don’t tell the naïve ones about résumé": "en",
		// Japanese
		"私の名前は田中です":              "ja",
		"アニメが好き":                 "ja",
		"ラーメン":                   "ja",
		"東京タワーに行きました":            "ja",
		"ユーザーはJavaScriptを勉強している": "ja",
		// Korean
		"안녕하세요": "ko",
		"사용자는 Python을 공부하고 있다": "ko",
		// other languages
		"Привет, как дела?":                            "ru",
		"Привіт, як справи?":                           "uk",
		"สวัสดีครับ":                                   "th",
		"مرحبا كيف حالك":                               "ar",
		"این کتاب گران است":                            "fa",
		"שלום עולם":                                    "he",
		"Γειά σου Κόσμε":                               "el",
		"मुझे चाय पसंद है":                             "hi",
		"L'utilisateur aime le thé vert":               "fr",
		"Hola, me gusta mucho el té":                   "es",
		"Ich trinke nicht gern Kaffee und das ist gut": "de",
		"Tôi không thích cà phê":                       "vi",
		"Žluťoučký kůň":                                "und",
		// no evidence
		"":             "und",
		"😀👍🏽":          "und",
		"12345 !?":     "und",
		"\xff\xfe\x00": "und",
	} {
		if got := lexical.Language(text); got != want {
			t.Errorf("Language(%q) = %q, want %q", text, got, want)
		}
	}
}
