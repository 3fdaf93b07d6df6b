package redact

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

var bip39Words = sync2048()

func sync2048() []string {
	var words []string
	for line := range strings.Lines(wordList) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			words = append(words, line)
		}
	}
	return words
}

// seedPhrase returns a wallet's words.
func seedPhrase(r *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = bip39Words[r.IntN(len(bip39Words))]
	}
	return strings.Join(words, " ")
}

func seed(n int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return seedPhrase(r, n) }
}

// Values used by several formats.
var (
	pin4      = of("", decimals, 4)
	pin6      = of("", decimals, 6)
	cvv       = of("", decimals, 3)
	opaqueKey = between(alnum, 20, 40)
	hexKey    = of("", hexes, 32)
	short     = func(r *rand.Rand) string {
		return pick(r, lowers, 1) + pick(r, decimals, 1) + pick(r, alnum, 1+r.IntN(3))
	}
	plainWord = func(r *rand.Rand) string { return someWords[r.IntN(len(someWords))] }
	// awkward contains characters that elsewhere end texts, strings and variable names.
	awkward = func(r *rand.Rand) string {
		return pick(r, alnum, 2) + pick(r, alnum+`"'\$`, 5) + pick(r, `"\$'`, 1) + pick(r, alnum, 4)
	}
	signed = func(r *rand.Rand) string {
		return pick(r, alnum, 3) + pick(r, alnum+"@:/?#&=%+ ", 6) + pick(r, decimals, 1) + pick(r, alnum, 2)
	}
)

// fullWidth replaces ASCII by full-width characters.
func fullWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r <= '~' {
			return r + 0xFEE0
		}
		return r
	}, s)
}

func joinedBy(separator string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, " ", separator) }
}

// inJSON encodes a text as a JSON string so many times.
func inJSON(times int) func(string) string {
	return func(s string) string {
		for range times {
			quoted := strconv.Quote(s)
			s = quoted[1 : len(quoted)-1]
		}
		return s
	}
}

// luhnNumber returns a card number.
func luhnNumber(prefix string, length int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		number := prefix + pick(r, decimals, length-len(prefix)-1)
		for last := range 10 {
			if full := number + strconv.Itoa(last); luhn(full) {
				return full
			}
		}
		panic(number)
	}
}

// residentNumber returns a Chinese identity number.
func residentNumber(r *rand.Rand) string {
	number := "11010519" + strconv.Itoa(50+r.IntN(49)) + "0" + strconv.Itoa(1+r.IntN(9)) + strconv.Itoa(10+r.IntN(19)) + pick(r, decimals, 3)
	sum := 0
	for i := range 17 {
		sum += int(number[i]-'0') * (1 << (17 - i) % 11)
	}
	return number + "10X98765432"[sum%11:sum%11+1]
}

func pemBody(r *rand.Rand) string {
	lines := make([]string, 4+r.IntN(8))
	for i := range lines {
		lines[i] = pick(r, base64s, 64)
	}
	return strings.Join(lines, "\n")
}

// written are the formats of programs: settings, code, URLs, headers, keys.
var written = []format{
	// Settings.
	{
		"env: prefix before API_KEY", opaqueKey, nil,
		[]string{"NAME_API_KEY={}", `export ACME_CORP_API_KEY="{}"`, "我把 MY_MAPS_API_KEY={} 写进了 .env", "set WEATHER_APIKEY={}"},
	},
	{"env: prefix before TOKEN", opaqueKey, nil, []string{"CI_DEPLOY_TOKEN={}", "docker run -e BOT_TOKEN={} bot", `$env:GITEA_TOKEN = "{}"`}},
	{"env: prefix before SECRET", opaqueKey, nil, []string{"APP_SECRET={}", "DJANGO_SECRET_KEY='{}'", "SESSION_SECRET={} node app.js"}},
	{
		"env: prefix before PASSWORD", password, nil,
		[]string{"MY_APP_DB_PASSWORD={}", "REDIS_PASSWORD='{}' ./run", "export ROOT_PASSWORD={}", "环境变量 MYSQL_PASSWORD={}"},
	},
	{"env: PASS and PWD", password, nil, []string{"SMTP_PASS={}", "FTP_PWD={}", "ADMIN_PASS=\"{}\"", "DB_PASS={} make"}},
	{"env: word password", plainWord, nil, []string{"DB_PASSWORD={}", "ADMIN_PASSWORD={} make", "export SMTP_PASS={}"}},
	{"yaml: key", opaqueKey, nil, []string{"api_key: {}\nmodel: x", "auth:\n  token: {}\n", "  client_secret: '{}'"}},
	{"yaml: password", password, nil, []string{"db:\n  user: app\n  password: {}\n  host: db", "smtp_password: \"{}\""}},
	{"toml, ini: password", password, nil, []string{"[db]\npasswd = {}\n", "password = \"{}\"", "db.pwd={}"}},
	{"flag: password", password, nil, []string{"backup --user bob --password {}", "tool --db-password={} run", "tool -password '{}'"}},
	{"flag: token", opaqueKey, nil, []string{"deploy --token {} --yes", "cli login --api-key={}", "run --auth-token \"{}\""}},
	{"code: api key", opaqueKey, nil, []string{`const apiKey = "{}";`, `api_key := "{}"`, `headers["x-api-key"] = '{}'`, `setApiKey("{}")`}},
	{"code: password", password, nil, []string{`password := "{}"`, `var dbPassword = '{}';`, `:password => "{}"`, `user.password = "{}"`}},
	{"json: camel case", opaqueKey, nil, []string{`{"clientSecret": "{}"}`, `{"accessToken":"{}","expires":3600}`, `{"a":{"refreshToken":"{}"}}`}},
	{"json: password", awkward, inJSON(1), []string{`{"user":"bob","password":"{}"}`, `{"db":{"passwd": "{}", "port": 1}}`}},
	{"json in json", strong, nil, []string{`{"body":"{\"password\":\"{}\",\"user\":\"bob\"}"}`, `payload: "{\"passwd\": \"{}\"}"`}},
	{"json in json, twice", strong, nil, []string{`{"log":"{\"body\":\"{\\\"password\\\":\\\"{}\\\"}\"}"}`}},
	{"json in json: token", opaqueKey, nil, []string{`{"body":"{\"access_token\":\"{}\",\"n\":1}"}`, `{"b":"{\"c\":\"{\\\"apiKey\\\": \\\"{}\\\"}\"}"}`}},
	{"json in json: awkward password", awkward, inJSON(2), []string{`{"body":"{\"password\":\"{}\",\"n\":1}"}`}},
	{"json in json: sentence", password, nil, []string{`{"body":"{\"text\":\"my password is {}\"}"}`, `{"args":"{\"q\":\"密码是{}\"}"}`}},
	{"json: quotes as \\u0022", strong, nil, []string{`{"body":"{\u0022password\u0022:\u0022{}\u0022}"}`}},
	{"xml: password", strong, nil, []string{"<password>{}</password>", `<property name="password" value="{}"/>`, `<db user="app" password="{}"/>`}},
	// URLs and connections.
	{"url: api_key parameter", opaqueKey, nil, []string{"https://api.example.com/v1/x?api_key={}", "curl 'https://api.example.com/?q=1&apikey={}&n=2'"}},
	{"url: token parameter", opaqueKey, nil, []string{
		"https://example.com/reset?token={}",
		"打开 https://example.com/a?access_token={}&x=1 看看", "wss://example.com/ws?auth_token={}",
	}},
	{"url: key parameter", opaqueKey, nil, []string{"https://maps.example.com/js?key={}&v=3", "https://api.example.com/a?q=tea&key={}"}},
	{"url: password parameter", of("", alnum, 8), nil, []string{"http://192.168.1.1/login?user=admin&password={}", "https://example.com/l?pwd={}&u=bob"}},
	{"url: signature", hexKey, nil, []string{
		"https://bucket.example.com/a.zip?X-Amz-Expires=60&X-Amz-Signature={}",
		"https://cdn.example.com/v?e=1&sig={}",
	}},
	{"url: parameter in a parameter", opaqueKey, nil, []string{"https://example.com/go?to=https%3A%2F%2Fapp.example.com%2F%3Ftoken%3D{}"}},
	{
		"url: user and password", of("", alnum+"!$*_-", 9), nil,
		[]string{"postgres://app:{}@db.example.com/x", "ftp://bob:{}@files.example.com", "数据库 mysql://root:{}@10.0.0.5:3306/a"},
	},
	{"url: password and no user", of("", alnum, 12), nil, []string{"redis://:{}@localhost:6379/0", "amqp://:{}@mq.example.com"}},
	{"url: password encoded", signed, url.QueryEscape, []string{"postgres://app:{}@db.example.com/x", "https://example.com/?u=bob&password={}"}},
	{
		"url: password with slash and at", func(r *rand.Rand) string { return pick(r, alnum, 4) + pick(r, "@/", 1) + pick(r, alnum, 5) }, nil,
		[]string{"mysql://root:{}@10.0.0.5:3306/shop", "amqp://bob:{}@mq.example.com/"},
	},
	{"url: token as user", of("", alnum, 40), nil, []string{"git clone https://{}@git.example.com/a/b.git", "https://{}:x-oauth-basic@git.example.com/a"}},
	{"connection: ADO", strong, nil, []string{"Server=db;Database=x;User Id=app;Password={};", "Data Source=.;Initial Catalog=a;User " +
		"ID=sa;Pwd={};Timeout=5"}},
	{
		"connection: libpq", of("", alnum+"!%*_-", 10), nil,
		[]string{"host=db.example.com user=app password={} dbname=x", "psql \"host=db password='{}' user=app\""},
	},
	{
		"connection: jdbc", of("", alnum, 10), nil,
		[]string{"jdbc:mysql://db:3306/x?user=app&password={}", "jdbc:sqlserver://db;user=sa;password={};encrypt=true"},
	},
	{
		"connection: azure storage", func(r *rand.Rand) string { return pick(r, base64s, 86) + "==" }, nil,
		[]string{
			"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
			"Endpoint=sb://a.example.net/;SharedAccessKeyName=r;SharedAccessKey={}",
		},
	},
	// Headers and cookies.
	{"cookie: session", opaqueKey, nil, []string{
		"Cookie: theme=dark; session={}; lang=en", "Set-Cookie: session_id={}; Path=/; HttpOnly",
		"curl -b 'sessionid={}' https://example.com",
	}},
	{"cookie: names of servers", of("", lowers+decimals, 26), nil, []string{"PHPSESSID={}", "JSESSIONID={}; a=b", "cookie: connect.sid={}"}},
	{"cookie: in words", opaqueKey, nil, []string{"my session cookie is {}", "登录cookie是{}", "the session id is {}"}},
	{"header: bearer", opaqueKey, nil, []string{"Authorization: Bearer {}", `-H "authorization: bearer {}"`, `{"Authorization":"Bearer {}"}`}},
	{
		"header: basic", func(r *rand.Rand) string { return pick(r, base64s, 26) + "==" }, nil,
		[]string{"Authorization: Basic {}", "Proxy-Authorization: Basic {}"},
	},
	{"header: token", hexKey, nil, []string{"Authorization: Token {}", "X-API-Key: {}", "X-Auth-Token: {}", "PRIVATE-TOKEN: {}"}},
	{"json web token", jwt, nil, []string{"{}", "the token is {} ok", "登录后得到{}"}},
	// Keys of providers.
	{"key: OpenAI", of("sk-"+"proj-", url64s, 64), nil, []string{"{}", "我的key是{}", "use {} please"}},
	{"key: Anthropic", func(r *rand.Rand) string { return "sk-" + "ant-api03-" + pick(r, url64s, 93) + "AA" }, nil, []string{"here: {}", "钥匙 {} 给你"}},
	{"key: DeepSeek", of("sk-", hexes, 32), nil, []string{"{}", "deepseek的{}"}},
	{"key: GitHub", of("gh"+"p_", alnum, 36), nil, []string{"{}", "git 用 {} 登录"}},
	{"key: GitHub, fine grained", of("github"+"_pat_", alnum+"_", 82), nil, []string{"{}"}},
	{"key: GitLab", of("gl"+"pat-", url64s, 20), nil, []string{"{}", "({})"}},
	{"key: Slack", func(r *rand.Rand) string {
		return "xo" + "xb-" + pick(r, decimals, 12) + "-" + pick(r, decimals, 12) + "-" + pick(r, alnum, 24)
	}, nil, []string{"{}", "slack {}."}},
	{"key: AWS", of("AK"+"IA", base32s, 16), nil, []string{"{}", "aws {} and", "id是{}"}},
	{"key: Google", of("AI"+"za", url64s, 35), nil, []string{"maps {} ok", "key={}"}},
	{"key: Stripe", of("sk_"+"live_", alnum, 24), nil, []string{"{}", "stripe {}"}},
	{"key: Hugging Face", of("h"+"f_", lowers, 34), nil, []string{"{}", "模型用{}下载"}},
	{"key: npm", of("np"+"m_", lowers+decimals, 36), nil, []string{"{}", "publish with {}"}},
	{"key: Alibaba", of("LT"+"AI", alnum, 20), nil, []string{"{}", "阿里云{}。"}},
	{
		"key: Telegram", func(r *rand.Rand) string { return "5" + pick(r, decimals, 9) + ":AA" + pick(r, url64s, 33) }, nil,
		[]string{"bot {} runs", "机器人{}"},
	},
	{"key: Grafana", func(r *rand.Rand) string { return "gl" + "sa_" + pick(r, alnum, 32) + "_" + pick(r, hexes, 8) }, nil, []string{"{}", "grafana {}"}},
	{
		"key: Postman", func(r *rand.Rand) string { return "PM" + "AK-" + pick(r, hexes, 24) + "-" + pick(r, hexes, 34) }, nil,
		[]string{"{}", "the one of Postman, {}, works"},
	},
	{"key: Doppler", of("dp"+".pt.", lowers+decimals, 43), nil, []string{"{}", "doppler {} ."}},
	{"key: New Relic", of("NR"+"AK-", lowers+decimals, 27), nil, []string{"new-relic {}", "new_relic_key={}"}},
	{"key: Pulumi", of("pul-", hexes, 40), nil, []string{"{}", "pulumi {}"}},
	{"key: Databricks", of("da"+"pi", hexes, 32), nil, []string{"{}", "用{}连"}},
	{"key: Sentry", of("sn"+"tryu_", hexes, 64), nil, []string{"{}", "sentry {}"}},
	{"key: named provider, no prefix", hexKey, nil, []string{"datadog_api = \"{}ab\"", "asana secret: {}", "algolia_api_key={}"}},
	// Private keys.
	{"private key: PEM", pemBody, nil, []string{
		"-----BEGIN RSA PRIVATE " + "KEY-----\n{}\n-----END RSA PRIVATE " + "KEY-----",
		"看：-----BEGIN PRIVATE " + "KEY-----\n{}\n-----END PRIVATE " + "KEY-----",
	}},
	{"private key: PEM, cut off", pemBody, nil, []string{"cut off:\n-----BEGIN OPENSSH PRIVATE " + "KEY-----\n{}"}},
	{"private key: PEM in JSON", pemBody, inJSON(1), []string{`{"private_key":"-----BEGIN PRIVATE ` + `KEY-----\n{}\n-----END PRIVATE ` + `KEY-----\n"}`}},
	{
		"private key: PEM quoted", pemBody, joinedLines("\n> "),
		[]string{"> -----BEGIN EC PRIVATE " + "KEY-----\n> {}\n> -----END EC PRIVATE " + "KEY-----"},
	},
	{
		"private key: in words", func(r *rand.Rand) string { return "MII" + pick(r, base64s, 80+r.IntN(80)) + "==" }, nil,
		[]string{"my private key is {}", "这是我的私钥：{}", "the ssh private key, keep it safe: {}"},
	},
	{"private key: of a wallet", of("", hexes, 64), nil, []string{"my wallet private key is {}", "以太坊私钥是{}", "private key = 0x{}"}},
}

func joinedLines(separator string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, "\n", separator) }
}

// said are the formats of people: sentences.
var said = []format{
	{"en: token in words", opaqueKey, nil, []string{
		"my access token is {}", "here's the bot token: {}",
		"The token you need for the API is {}.", "the new token's {}", "I generated a token, it is {}",
	}},
	{"en: key in words", opaqueKey, nil, []string{
		"the api key for the weather service is {}", "use {} as the api key", "My OpenAI key: {}",
		"the secret key we use in staging is {}", "the key I got from them is {}",
	}},
	{"en: password is", password, nil, []string{
		"my password is {}", "The password is {}.", "my wifi password's {}",
		"Our passwords are {} these days", "password: {}",
	}},
	{
		"en: password, words between", password, nil,
		[]string{
			"The password for the old router at home is now {}!", "my password for work and everything else is {}",
			"the password that I use for my bank is {}", "the admin password on that machine is still {}",
		},
	},
	{
		"en: password, other verbs", password, nil,
		[]string{
			"I changed my password to {}", "I've set the wifi password to {}", "my password will be {} from Monday",
			"the password became {}", "reset my password to {} please", "the password should be {}",
		},
	},
	{
		"en: value before the word", password, nil,
		[]string{"I use {} as my password", "{} is my password", "set {} as the wifi password", "{} is the password for the NAS"},
	},
	{
		"en: password, here it is", password, nil,
		[]string{"Here is my password: {}", "the wifi password? It's {}", "You wanted the password, here it is: {}", "the password reads {}"},
	},
	{
		"en: login and password", password, nil,
		[]string{"user: bob / password: {}", "login bob, password {}", "username bob pass {}", "my credentials are bob / {}"},
	},
	{"en: awkward password", awkward, nil, []string{"my password is {}", "the password: {}", "I changed the password to {} today"}},
	{"en: awkward password, quoted", awkward, nil, []string{"my password is “{}”", "the password is `{}`", "password: 「{}」"}},
	{"en: short password", short, nil, []string{"my password is {}", "password: {}", "the wifi password is {}.", "pwd={}"}},
	{"en: word as password", plainWord, nil, []string{"my password is {}", "Password: {}", `the password is "{}"`, "my password's {}."}},
	{"en: passphrase of words", seed(5), nil, []string{"the passphrase is {}", `my passphrase: "{}"`}},
	{"en: pin", pin4, nil, []string{"my PIN is {}", "the pin for my phone is {}", "PIN: {}", "I changed my PIN to {}", "my pin code's {}"}},
	{"en: passcode", pin6, nil, []string{"my iPhone passcode is {}", "passcode: {}", "the unlock code is {}"}},
	{"en: safe code", pin6, nil, []string{
		"The code for the safe is {}.", "the safe's code is {}", "safe combination: {}",
		"the combination to our safe is {}",
	}},
	{"en: lock and door code", pin4, nil, []string{
		"the door code is {}", "our gate code: {}", "The code of my bike lock is {}.",
		"the lock opens with the code {}", "alarm code {}",
	}},
	{"en: recovery codes", func(r *rand.Rand) string {
		return pick(r, lowers+decimals, 5) + "-" + pick(r, lowers+decimals, 4) + pick(r, decimals, 1)
	}, nil, []string{"my recovery code is {}", "Recovery codes: {}", "one of the backup codes is {}"}},
	{"en: list of recovery codes", func(r *rand.Rand) string {
		return pick(r, decimals, 8) + " " + pick(r, decimals, 8) + " " + pick(r, decimals, 8)
	}, joinedBy("\n"), []string{"my backup codes:\n{}", "Here are the recovery codes: {}"}},
	{"en: one-time code", pin6, nil, []string{"the verification code is {}", "{} is your verification code", "my 2FA code: {}"}},
	{"en: authenticator secret", of("", base32s, 32), nil, []string{"the TOTP secret is {}", "2FA secret: {}", "otpauth://totp/a:b?secret={}"}},
	{"en: cvv", cvv, nil, []string{"the CVV is {}", "my card's CVC: {}", "security code on the back is {}", "cvv {}"}},
	{"en: card", luhnNumber("4", 16), nil, []string{"pay with {} please", "my card number is {}."}},
	{"en: card in fours", luhnNumber("5105", 16), inFours, []string{"pay with {} please", "visa {}"}},
	{
		"iban", either(iban("DE", 22, ""), iban("GB", 22, "BARC"), iban("FR", 27, ""), iban("ES", 24, ""), iban("NL", 18, "ABNA")), nil,
		[]string{"my IBAN is {}", "{}", "打到 {} 就行", "Konto: {}."},
	},
	{
		"iban in fours", either(iban("DE", 22, ""), iban("CH", 21, ""), iban("IT", 27, "X")), inFours,
		[]string{"my IBAN is {}", "IBAN {}", "pay to {} please"},
	},
	{"seed phrase, 12 words", seed(12), nil, []string{"my seed phrase is {}", "{}", "recovery phrase: {}", "The wallet's words are {}."}},
	{"seed phrase, 24 words", seed(24), nil, []string{"seed phrase: {}", "write this down: {}", "my mnemonic is {}"}},
	{"seed phrase, commas", seed(12), joinedBy(", "), []string{"my recovery phrase is {}", "{}"}},
	{"seed phrase, lines", seed(12), joinedBy("\n"), []string{"my seed words:\n{}"}},
	{"full-width digits: pin", pin6, fullWidth, []string{"我的密码是{}", "PIN：{}", "支付密码{}"}},
	{
		"full-width: password", func(r *rand.Rand) string { return pick(r, lowers, 4) + pick(r, decimals, 4) }, fullWidth,
		[]string{"密码是{}", "パスワードは{}です", "ｐａｓｓｗｏｒｄ：{}"},
	},
	{"full-width digits: card", luhnNumber("62", 16), fullWidth, []string{"卡号{}", "我的银行卡是{}"}},
	{"full-width digits: identity", residentNumber, fullWidth, []string{"身份证{}", "我的身份证号是{}"}},
	{"invisible characters", password, func(s string) string { return s[:3] + "\u200b" + s[3:] }, []string{"my pass\u200bword is {}", "密\u200b码是{}"}},
	{"zh: identity", residentNumber, nil, []string{"身份证{}", "我的身份证号码是{}，帮我订票"}},
	{"zh: bank card", luhnNumber("62", 19), nil, []string{"我的银行卡号是{}，开户行招商", "卡号：{}"}},
	{"zh: password", password, nil, []string{"密码是{}", "我的密码是{}，别告诉别人", "密碼：{}", "口令为 {}", "我家WiFi密码：{}，记一下"}},
	{"zh: password, other verbs", password, nil, []string{"密码改成了{}", "我把密码换成{}了", "密码现在用的是{}", "密码设的{}", "密码还是那个{}", "密码已经重置为{}"}},
	{"zh: password, words between", password, nil, []string{"密码我记得是{}", "密码应该是 {} 吧", "路由器后台的密码目前是{}", "密码给你 {}", "密码如下：{}"}},
	{"zh: value before the word", password, nil, []string{"{}是我的密码", "我用{}当密码", "把{}设为密码", "{}就是wifi密码"}},
	{"zh: account and password", password, nil, []string{"账号bob密码{}", "帐号：bob 密码：{}", "用户名 bob，密码 {}"}},
	{"zh: awkward password", awkward, nil, []string{"密码是{}", "密码：{}", "密码是「{}」"}},
	{"zh: short password", short, nil, []string{"密码是{}", "密码：{}", "wifi密码{}"}},
	{"zh: payment and unlock", pin6, nil, []string{"支付密码是{}", "手机解锁密码{}", "银行卡密码：{}", "取款密码是{}", "锁屏密码改成{}了"}},
	{"zh: safe and lock", pin4, nil, []string{"保险箱密码是{}", "保险柜的密码：{}", "门锁密码{}", "密码锁是{}", "行李箱密码 {}", "小区门禁码是{}"}},
	{"zh: one-time and recovery code", pin6, nil, []string{"验证码是{}", "验证码：{}", "您的验证码为{}，5分钟内有效", "恢复码是{}", "备用验证码 {}"}},
	{"zh: cvv", cvv, nil, []string{"CVV是{}", "卡的安全码是{}", "CVV：{}", "卡背面后三位是{}"}},
	{"zh: token and key", opaqueKey, nil, []string{"我的token是{}", "API key 给你：{}", "访问令牌为{}", "密钥发你 {}", "这个接口的key是{}", "用{}当token"}},
	{"zh: seed phrase", seed(12), nil, []string{"助记词是{}", "我的助记词：{}", "钱包助记词 {}"}},
	{"de: password", password, nil, []string{
		"Mein Passwort ist {}", "Das WLAN-Passwort lautet {}", "Passwort: {}",
		"Das Kennwort für den Router heißt jetzt {}", "Ich habe mein Passwort auf {} geändert",
	}},
	{"de: codes", pin4, nil, []string{
		"Meine PIN ist {}", "Der Code für den Tresor ist {}", "Der Türcode lautet {}",
		"Die Kombination vom Safe ist {}", "Mein Entsperrcode: {}",
	}},
	{"de: key", opaqueKey, nil, []string{"Mein API-Schlüssel ist {}", "Der Zugangstoken lautet {}", "Der geheime Schlüssel ist {}"}},
	{"fr: password", password, nil, []string{
		"Mon mot de passe est {}", "Le mot de passe du wifi, c'est {}", "mot de passe : {}",
		"J'ai changé mon mot de passe en {}", "mon mdp c'est {}",
	}},
	{"fr: codes", pin4, nil, []string{
		"Mon code PIN est {}", "Le code de la porte est le {}", "le digicode, c'est {}",
		"Le code du coffre est {}", "mon code secret est {}",
	}},
	{"fr: key", opaqueKey, nil, []string{"Ma clé API est {}", "Le jeton d'accès est {}", "la clé secrète : {}"}},
	{"es: password", password, nil, []string{
		"Mi contraseña es {}", "La contraseña del wifi es {}", "contraseña: {}",
		"cambié mi contraseña a {}", "la clave del router es {}",
	}},
	{"es: codes", pin4, nil, []string{
		"Mi PIN es {}", "El código de la puerta es {}", "el código de la caja fuerte es {}",
		"la combinación de la caja es {}", "mi código secreto es el {}",
	}},
	{"es: key", opaqueKey, nil, []string{"Mi clave de API es {}", "El token de acceso es {}", "la clave secreta: {}"}},
	{"ja: password", password, nil, []string{"パスワードは{}です", "Wi-Fiのパスワードは「{}」", "パスワード：{}", "パスワードを{}に変えた", "私のパスワードが{}になりました"}},
	{"ja: codes", pin4, nil, []string{"暗証番号は{}です", "金庫の番号は{}", "玄関のパスコードは{}", "ロックの暗証番号：{}", "確認コードは{}です"}},
	{"ja: key", opaqueKey, nil, []string{"APIキーは{}です", "アクセストークンは{}", "秘密鍵は{}"}},
}

// TestFormatsLeakNothing measures every supported format with 500 values each.
func TestFormatsLeakNothing(t *testing.T) {
	t.Parallel()
	table(t, append(append([]format{}, written...), said...), nil)
}
