package redact

import "testing"

// TestHarmlessMentionsStay: Sentences and settings without a secret stay unchanged.
func TestHarmlessMentionsStay(t *testing.T) {
	t.Parallel()
	r := all(t)
	for _, text := range []string{
		// English.
		"I forgot my password", "the password reset is broken", "I changed my password on 2023-05-07", "my password expired 3 days ago",
		"the password must have 12 characters",
		"Passwords should be 8-16 characters long.", "I use a password manager called KeePass2", "my password manager is Bitwarden",
		"the password field is too small", "reset the password at 10:30am",
		"I shared my Netflix password with 3 friends", "the wifi password is on the fridge", "my password is a secret",
		"I wrote the password on page 42", "the password? I don't know it",
		"He was locked out because of his password so he bought an iPhone15", "the PIN is printed on the letter",
		"my pin number has 4 digits", "I have 2 pins on the map", "pin 12 is broken",
		"the code has 1200 lines", "the code for the parser is 500 lines long", "the dress code is casual", "zip code 94107",
		"the area code is 415", "error code 404", "promo code SAVE20 gives 20%",
		"the code of the game is in C++17", "the lock broke in 2019", "the door is 210 cm wide, I need a code review",
		"the token economy is interesting", "tokens per second: 120", "max_tokens=4096",
		"The key takeaway is that 2023 was great", "the key is C# minor", "press the F5 key twice", "my key ring has 5 keys",
		"the secret is in the sauce", "a secret: he loves her", "the secret is 3 hours of rest",
		"my session is on Monday at 10:30", "I baked cookies for 24 people", "the cookie recipe: 200g butter", "my login works again",
		"log in with Google", "log in with your email bob@example.com",
		"sign in with Apple on iPhone15", "unlock the door with the key", "the recovery took 6 months", "security code of conduct",
		"the combination of vitamin B12 and iron", "the passphrase is long",
		"remember the milk, eggs, bread, butter, cheese, apple and the rest", "pass: 12", "test_pass = true", "the first pass: 12ms",
		"my boarding pass is for seat 12A", "the pass costs 120 euro",
		"mnemonics help me learn", "the seed phrase is very important to keep safe", "I lost my seed phrase", "my IBAN is in the app",
		"my card expires 05/27", "CVV is the number on the back",
		"the API key is missing", "the API key is in the vault", "api_key: required", "token: string", "secret: boolean", "key: value",
		"the key: be patient", "password: string", "type Password = string",
		"func password(name string) string", "password := os.Getenv(\"DB\")", "if password == nil {",
		"the access token expires after 3600 seconds", "session_timeout=3600", "signature: Bob Smith",
		"https://example.com/docs/password-reset?step=2", "https://example.com/search?q=password&page=2",
		"https://github.com/user/repo/issues/1234", "ssh bob@example.com", "http://user@example.com/",
		"https://example.com/@bob:1234", "email: bob@example.com, phone: 555-123-4567", "version: 1.2.3-rc4",
		"sha: 3f786850e387550fdaab836ed7e6dc881de23001b", "id: 550e8400-e29b-41d4-a716-446655440000",
		"The verification code did not arrive", "I never got the OTP", "my bank sends an OTP in 30 seconds", "I set my alarm for 6:30",
		"the alarm went off at 0600", "my safe word is banana",
		"the gate number is 12", "Gate B12, door 5", "my locker is number 214", "flight code LH1234", "booking code ABC123",
		"the building code changed in 2021", "I was born in 1984",
		// Chinese.
		"密码忘了", "我又忘记密码了怎么办", "密码错误次数太多", "密码要8位以上", "密码输错5次就锁了", "我在2023年改过密码", "密码不能告诉别人", "请帮我重置密码", "密码学考试考了95分", "密码太短了，至少12位",
		"密码锁坏了", "验证码收不到", "验证码5分钟内有效", "验证码一直发不过来，打10086也没用", "保险箱里有2000块", "我的门锁是2021年装的", "安全码在卡的背面", "助记词一定要抄在纸上", "银行卡丢了", "令牌环网络",
		"关键是每天30分钟", "这个key很重要", "token用完了，一共1200个", "私钥不要给别人", "我忘了wifi密码", "密码是我女儿的生日", "他的口令很响亮", "口令是保密的", "手机号13812345678", "房间号码是302", "门牌号码1203",
		// German, French, Spanish, Japanese.
		"Ich habe mein Passwort vergessen", "Das Passwort ist falsch", "Das Passwort muss 12 Zeichen haben",
		"Mein Passwort läuft in 30 Tagen ab", "Der Code ist schlecht geschrieben", "Das Schloss ist aus dem Jahr 1890",
		"J'ai oublié mon mot de passe", "Le mot de passe est incorrect", "le mot de passe est trop court", "le code postal est 75011",
		"la porte est fermée depuis 2019", "la clé est sous le paillasson",
		"He olvidado mi contraseña", "La contraseña es incorrecta", "la clave del éxito es trabajar", "la puerta mide 210 cm",
		"el código postal es 28013", "la contraseña caduca en 30 días",
		"パスワードを忘れました", "パスワードは8文字以上です", "パスワードが違います", "暗証番号を忘れた", "電話番号は03-1234-5678です", "部屋の番号は302です", "鍵は玄関にあります",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
