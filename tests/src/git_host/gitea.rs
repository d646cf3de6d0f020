//! A real Gitea with two people: `ada`, who owns repositories, and `hub`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::{Child, Output, eventually, parts, ports, scratch, wait};

/// Everybody's password.
const PASSWORD: &str = "correct horse";

/// Where people would be sent after they logged in; nobody listens there.
const CALLBACK: &str = "http://127.0.0.1/callback";

/// A running Gitea.
#[derive(Debug)]
pub struct Gitea {
    port: u16,
    folder: PathBuf,
    token: String,
    _server: Child,
}

impl Gitea {
    /// Starts it and makes its people.
    pub fn start() -> Self {
        let (folder, port) = (scratch::folder("gitea"), ports::free());
        let user = Output::of(Command::new("id").arg("-un")).expect_ok();
        let fixed = parts::folder().join("gitea-static");
        let config = format!(
            "RUN_MODE = prod\nRUN_USER = {}\nWORK_PATH = {work}\n[server]\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = {port}\n\
             ROOT_URL = http://127.0.0.1:{port}/\nDISABLE_SSH = true\nOFFLINE_MODE = true\nSTATIC_ROOT_PATH = {fixed}\n\
             [database]\nDB_TYPE = sqlite3\n[security]\nINSTALL_LOCK = true\n[actions]\nENABLED = false\n\
             [indexer]\nISSUE_INDEXER_TYPE = db\n[webhook]\nALLOWED_HOST_LIST = loopback\n[cron]\nENABLED = false\n\
             [log]\nMODE = console\nLEVEL = warn\n",
            user.trim(),
            work = folder.display(),
            fixed = fixed.display(),
        );
        fs::write(folder.join("app.ini"), config).expect("the scratch folder is writable");
        let command = |arguments: &[&str]| {
            let mut command = parts::command("gitea");
            command.args(arguments).arg("--config").arg(folder.join("app.ini"));
            command
                .env("HOME", &folder)
                .env("GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT", "true");
            command
        };
        Output::of(&mut command(&["migrate"])).expect_ok();
        for name in ["ada", "hub"] {
            let mail = format!("{name}@example.com");
            let make = [
                "admin",
                "user",
                "create",
                "--username",
                name,
                "--password",
                PASSWORD,
                "--email",
                &mail,
            ];
            Output::of(&mut command(&[&make[..], &["--must-change-password=false"]].concat())).expect_ok();
        }
        let make = [
            "admin",
            "user",
            "generate-access-token",
            "--username",
            "hub",
            "--raw",
            "--scopes",
            "write:repository",
        ];
        let token = Output::of(&mut command(&make)).expect_ok();
        let token = token.split_whitespace().last().expect("it prints a token").to_owned();
        let mut server = Child::start("gitea", &folder, &mut command(&["web"]));
        eventually(wait::LONG, "Gitea listens", || {
            server.assert_running();
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
        Self {
            port,
            folder,
            token,
            _server: server,
        }
    }

    /// Makes the private repository `ada/NAME`, which `hub` may read, or write.
    #[track_caller]
    pub fn make(&self, name: &str, permission: &str) {
        self.ask(
            "POST",
            "/user/repos",
            &json!({"name": name, "private": true, "default_branch": "main"}),
        );
        let path = format!("/repos/ada/{name}/collaborators/hub");
        self.ask("PUT", &path, &json!({"permission": permission}));
    }

    /// Where everybody finds `ada/NAME`.
    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/ada/{name}.git", self.port)
    }

    /// Where `ada` pushes to.
    pub fn url_of_ada(&self, name: &str) -> String {
        let password = PASSWORD.replace(' ', "%20");
        format!("http://ada:{password}@127.0.0.1:{}/ada/{name}.git", self.port)
    }

    /// A file with the hub's token, as `--git-credentials` takes it.
    pub fn credentials(&self) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let file = self.folder.join("token");
        fs::write(&file, format!("username=hub\npassword={}\n", self.token)).expect("the scratch folder is writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
        file.display().to_string()
    }

    /// The hub's token, which nobody may see.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// What it is called in its ID tokens.
    pub fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes the organisation `NAME` with ada in it, and an application, whose id tokens are for: (id, secret).
    #[track_caller]
    pub fn application(&self, organisation: &str) -> (String, String) {
        self.ask("POST", "/orgs", &json!({"username": organisation}));
        let wish = json!({"name": "fleet", "redirect_uris": [CALLBACK], "confidential_client": true});
        let made = self.ask("POST", "/user/applications/oauth2", &wish);
        let text = |name: &str| {
            made[name]
                .as_str()
                .unwrap_or_else(|| panic!("{name} is in {made}"))
                .to_owned()
        };
        (text("client_id"), text("client_secret"))
    }

    /// An ID token of ada's, by the steps that a browser takes for her.
    #[track_caller]
    pub fn id_token(&self, (id, secret): &(String, String)) -> String {
        let password = PASSWORD.replace(' ', "+");
        let login = self.form("/user/login", "", &format!("user_name=ada&password={password}"));
        // The login gives a session anew; the newest of the cookie's values counts.
        let cookies = login.lines().filter_map(|line| line.strip_prefix("Set-Cookie: "));
        let mut cookies = cookies.filter_map(|cookie| cookie.split(';').next());
        let session = cookies.rfind(|cookie| cookie.starts_with("i_like_gitea="));
        let cookie = session.unwrap_or_else(|| panic!("no session is in {login}")).to_owned();
        let callback = CALLBACK.replace(':', "%3A").replace('/', "%2F");
        let scope = "openid+profile+email+groups";
        let asked = format!("client_id={id}&redirect_uri={callback}&response_type=code&scope={scope}&state=x");
        self.exchange(&format!(
            "GET /login/oauth/authorize?{asked} HTTP/1.0\r\nCookie: {cookie}\r\nHost: 127.0.0.1\r\n\r\n"
        ));
        let grant = format!("client_id={id}&redirect_uri={callback}&scope={scope}&state=x&nonce=&granted=true");
        let granted = self.form("/login/oauth/grant", &cookie, &grant);
        let code = granted
            .split("code=")
            .nth(1)
            .and_then(|rest| rest.split(['&', '\r']).next());
        let code = code.unwrap_or_else(|| panic!("no code is in {granted}"));
        let exchange = format!(
            "grant_type=authorization_code&code={code}&client_id={id}&client_secret={secret}&redirect_uri={callback}"
        );
        let answer = self.form("/login/oauth/access_token", "", &exchange);
        let body: Value = answer
            .split_once("\r\n\r\n")
            .and_then(|(_, body)| serde_json::from_str(body).ok())
            .unwrap_or_default();
        let token = body["id_token"].as_str();
        token.unwrap_or_else(|| panic!("no token is in {answer}")).to_owned()
    }

    fn form(&self, path: &str, cookie: &str, body: &str) -> String {
        self.exchange(&format!(
            "POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        ))
    }

    /// Asks Gitea's API as `ada`.
    ///
    /// # Panics
    /// If the answer is no success.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.try_ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path} says {status}: {answer}");
        answer
    }

    /// As [`Self::ask`], with the status.
    pub fn try_ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let login = base64::engine::general_purpose::STANDARD.encode(format!("ada:{PASSWORD}"));
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = format!(
            "{method} /api/v1{path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Basic {login}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        );
        let answer = self.exchange(&request);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (
            status.expect("an answer has a status"),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    }

    fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("Gitea listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a socket");
        stream.write_all(request.as_bytes()).expect("Gitea reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("Gitea answers");
        answer
    }
}
