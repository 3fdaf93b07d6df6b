package redact

import "testing"

// TestBareFindsStatementsWithOnlyASecret: Bare recognises a statement that contains only a secret, in several languages.
func TestBareFindsStatementsWithOnlyASecret(t *testing.T) {
	t.Parallel()
	for text, bare := range map[string]bool{
		"my password is [redacted: password]":                                    true,
		"[redacted: API key]":                                                    true,
		"The user's API key is [redacted: API key].":                             true,
		"Please remember that my PIN is [redacted: password]!":                   true,
		"the user's card number: [redacted: card number]":                        true,
		"my password is [redacted: password] and my PIN is [redacted: password]": true,
		"我的密码是[已隐去：密码]":                                                          true,
		"记住，我的银行卡号是[已隐去：银行卡号]":                                                   true,
		"用户的验证码为 [已隐去：密码]。":                                                      true,
		"Mein Passwort lautet [redacted: password]":                              true,
		"Mon mot de passe est [redacted: password]":                              true,
		"Mi contraseña es [redacted: password]":                                  true,
		"パスワードは[redacted: password]です":                                           true,
		"My Netflix password is [redacted: password]":                            false,
		"I pay with [redacted: card number] and live in Berlin":                  false,
		"the code for grandma's house is [redacted: password]":                   false,
		"我的支付宝密码是[已隐去：密码]，我喜欢喝茶":                                                 false,
		"my password is wrong":                                                   false,
		"I like [brackets]":                                                      false,
		"":                                                                       false,
	} {
		if got := Bare(text); got != bare {
			t.Errorf("Bare(%q) is %t", text, got)
		}
	}
}
