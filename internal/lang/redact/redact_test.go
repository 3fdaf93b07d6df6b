package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

func all(t testing.TB) *Redactor {
	t.Helper()
	r, err := New(Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const digits36 = "0123456789abcdefghijABCDEFGHIJ012345"

// TestSecretsAreRemoved: Each secret is removed and the text around it stays. The keys are concatenated here, so that no scanner reports
// them.
func TestSecretsAreRemoved(t *testing.T) {
	r := all(t)
	for _, test := range []struct{ text, secret, marker string }{
		{"My OpenAI key is $, keep it", "sk-" + "proj-" + digits36, "[redacted: API key]"},
		{"我的 key 是 $，别忘了", "sk-" + digits36, "[已隐去：API密钥]"},
		{"aws $ and", "AKIA" + "IOSFODNN7EXAMPLZ", "[redacted: API key]"},
		{"export GH=$", "ghp_" + digits36, "[redacted: API key]"},
		{"($)", "github" + "_pat_" + digits36 + digits36, "[redacted: API key]"},
		{"slack: $.", "xoxb" + "-123456789012-123456789012-abcdefghij", "[redacted: API key]"},
		{"maps $", "AIza" + "SyA0123456789abcdefghijABCDEFGHIJ01", "[redacted: API key]"},
		{"bot $ runs", "123456789:AA" + "Hfiqksie8372hfjskq1928fjwiwqoqq01", "[redacted: API key]"},
		{"stripe $", "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc", "[redacted: API key]"},
		{"阿里云$。", "LTAI" + "5tABCdefGHI123456789", "[已隐去：API密钥]"},
		{"the api key is $ ok", "9f86d081884c7d659a2feaa0", "[redacted: API key]"},
		{"client_secret=$", "a1b2c3d4e5f6g7h8i9", "[redacted: API key]"},
		{"密钥是 $", "a1b2c3d4e5f6g7h8i9", "[已隐去：API密钥]"},
		{"jwt $", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "[redacted: token]"},
		{"Authorization: Bearer $", "abcdef0123456789abcdef", "[redacted: token]"},
		{"here $ done", "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu\n-----END " +
			"RSA PRIVATE " + "KEY-----", "[redacted: private key]"},
		{"cut off:\n$", "-----BEGIN OPENSSH PRIVATE " + "KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "[redacted: private key]"},
		{"my password is $.", "hunter2", "[redacted: password]"},
		{"My password is $", "swordfish", "[redacted: password]"},
		{"The password for the old router at home is now $!", "Xy7$kkq", "[redacted: password]"},
		{"password: $ and more", "correct-horse", "[redacted: password]"},
		{`the PIN is $, don't tell`, "4711", "[redacted: password]"},
		{`the passphrase is "$"`, "four words of mine", "[redacted: password]"},
		{"DB_PASSWORD=$ make", "tiger", "[redacted: password]"},
		{"log in as bob password $", "hunter22", "[redacted: password]"},
		{"postgres://app:$@db.local/x", "s3cr3t", "[redacted: password]"},
		{"密码是$", "abc12345", "[已隐去：密码]"},
		{"我家 WiFi 密码：$，记一下", "abcd!8899", "[已隐去：密码]"},
		{"支付密码改成了 $ 了", "739201", "[已隐去：密码]"},
		{"口令是「$」", "天王盖地虎", "[已隐去：密码]"},
		{"pay with $ please", "4111 1111 1111 1111", "[redacted: card number]"},
		{"pay with $.", "4111111111111111", "[redacted: card number]"},
		{"amex $", "3782-822463-10005", "[redacted: card number]"},
		{"我的银行卡号是$，开户行招商", "6222021234567890128", "[已隐去：银行卡号]"},
		{"our order 12345 4111 1111 1111 1111"[:16] + "$", "4111 1111 1111 1111", "[redacted: card number]"},
		{"身份证$", "11010519491231002X", "[已隐去：身份号码]"},
		{"My SSN is $", "078-05-1120", "[redacted: identity number]"},
	} {
		text := strings.Replace(test.text, "$", test.secret, 1)
		if got, want := r.Text(text), strings.Replace(test.text, "$", test.marker, 1); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if again := r.Text(r.Text(text)); again != r.Text(text) {
			t.Errorf("redacted again, %q becomes %q", r.Text(text), again)
		}
	}
}

// TestTextWithoutSecretsStays: Text without secrets stays unchanged.
func TestTextWithoutSecretsStays(t *testing.T) {
	r := all(t)
	for _, text := range []string{
		"Call me at +86 138 1234 5678 or 13812345678", "我的电话是13812345678，座机010-12345678", "+44 20 7946 0958, (555) 123-4567, 1-800-555-0199",
		"订单号 4111111111111111 还没发货", "Order #4111111111111111 shipped", "order 2024112012345678", "单号 6222021234567890128",
		"tracking number 9400111899223197428497",
		"commit 3f786850e387550fdaab836ed7e6dc881de23001b", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"550e8400-e29b-41d4-a716-446655440000", "my Discord id is 804111111111111111", "timestamp 1732159200000, 1732159200000000",
		"π is 3.14159265358979323846", "ISBN 9783161484100",
		"The password is wrong again", "my password is too long", "I forgot my password", "the password was changed yesterday",
		"Password: required", "password is 12-character minimum",
		"password = getpass()", "password=$PASSWORD", "password: ****", "password is <password>", "The password is case-sensitive",
		"change the password on Monday", "my password is the same as before",
		"请记住：我的暗号是user3-209号", "密码是什么？", "密码忘了", "密码是多少来着", "我的密码是我女儿的生日", "密码错误", "请输入密码：", "密码 学是一门学科",
		"the key is under the mat", "the key is important", "task-abcdefghijklmnopqrstuvwxyz1", "sk-learn and scikit",
		"a secret is a secret", "the key is to keep calm and carryon",
		"110105194912310021 is no identity number", "her birthday is 1949-12-31", "身份证上的名字是王伟", "I paid 4 111 111 yen",
		"I drive on route 66 in 2026 from 10:00", "群号 123456789012345", "the pin 3 is at 5V", "bearer of good news", "basic understanding",
		"http://example.com:8080/a@b", "mailto:ann@example.com", "12 34 56 78 90 12 34 56", "",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestOnlyRequestedKindsAreRedacted: Only the requested kinds are redacted, and none if none is requested.
func TestOnlyRequestedKindsAreRedacted(t *testing.T) {
	text := "my password is hunter2 and my card is 4111 1111 1111 1111"
	only, err := New([]Kind{CardNumber})
	if err != nil {
		t.Fatal(err)
	}
	if got := only.Text(text); got != "my password is hunter2 and my card is [redacted: card number]" {
		t.Error(got)
	}
	if got := (*Redactor)(nil).Text(text); got != text {
		t.Error(got)
	}
	if _, err := New([]Kind{"phone"}); err == nil || !strings.Contains(err.Error(), "use account_number, api_key, card_number, ") {
		t.Error(err)
	}
}

// TestRedactedJSONIsValid: Redacted JSON is valid JSON, wherever the secret is.
func TestRedactedJSONIsValid(t *testing.T) {
	r := all(t)
	for text, want := range map[string]string{
		`{"card":4111111111111111,"n":1}`:         `{"card":"[redacted: card number]","n":1}`,
		`{"q":"my password is hunter2"}`:          `{"q":"my password is [redacted: password]"}`,
		`{"password":"hunter2","x":[]}`:           `{"password":"[redacted: password]","x":[]}`,
		`{"q":"it \"is\" 4111-1111-1111-1111"}`:   `{"q":"it \"is\" [redacted: card number]"}`,
		`{"q":"the password is \"open sesame\""}`: `{"q":"the password is \"[redacted: password]\""}`,
		`no JSON, my password is hunter2`:         `no JSON, my password is [redacted: password]`,
		`{"n": 1.10}`:                             `{"n": 1.10}`,
	} {
		got := r.JSON(text)
		if got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is not valid JSON", got)
		}
	}
}

// TestDialogueIsRedactedInACopy: Every text of a dialogue is redacted, findings are described, and the caller's dialogue stays unchanged.
func TestDialogueIsRedactedInACopy(t *testing.T) {
	r := all(t)
	d := memory.Dialogue{Messages: []memory.Message{
		{Content: "My password is hunter2", Metadata: `{"card":"4111111111111111"}`},
		{Content: "ok", Tools: []memory.ToolCall{{Arguments: `{"password":"hunter2"}`, Result: "ok, 密码是hunter2"}}},
		{Content: "before: [redacted: token]"},
	}}
	clean, found := r.Dialogue(d)
	if text, err := json.Marshal(clean); err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "4111") {
		t.Errorf("%s, %v", text, err)
	}
	if got := found.String(); got != "1 token, 1 card number and 3 passwords" {
		t.Error(got)
	}
	if d.Messages[0].Content != "My password is hunter2" || d.Messages[1].Tools[0].Arguments != `{"password":"hunter2"}` {
		t.Error("the dialogue itself was changed")
	}
	if got := r.Without("tea my password is hunter2 [redacted: password] tea"); got != "tea my password is \n \n tea" {
		t.Errorf("%q", got)
	}
}

func FuzzText(f *testing.F) {
	r := all(f)
	f.Add(`{"password":"hunter2 4111 1111 1111 1111","k":4111111111111111}`)
	f.Add("密码是「abc12345」，卡号6222021234567890128，11010519491231002X")
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Text(text)
		if again := r.Text(once); again != once {
			t.Errorf("%q became %q, and then %q", text, once, again)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(r.JSON(text))) {
			t.Errorf("%q became %q", text, r.JSON(text))
		}
	})
}

func BenchmarkText(b *testing.B) {
	r := all(b)
	text := strings.Repeat("I have a dog, and the order number is 123456. 我喜欢吃辣。", 10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
}
