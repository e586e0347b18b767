"""A person with a browser: sets WordPress up, logs in, writes, comments, searches, administers. Asserts what the pages say.

Every page is also read for WordPress's notes of database errors, and so is its log at the end.
"""

import html
import http.cookiejar
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
import zlib

SITE, FOLDER = sys.argv[1:]
PNG = b"\x89PNG\r\n\x1a\n"


class Browser:
    def __init__(self):
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.nonce = None

    def open(self, path, data=None, headers=None, method=None, status=200):
        if isinstance(data, dict):
            data = urllib.parse.urlencode(data, doseq=True).encode()
        url = path if path.startswith("http") else SITE + path
        request = urllib.request.Request(url, data, headers or {}, method=method)
        try:
            answer = self.opener.open(request, timeout=120)
        except urllib.error.HTTPError as error:
            answer = error
        body = answer.read().decode("utf-8", "replace")
        assert answer.status == status, f"{path}: {answer.status}, not {status}: {text(body)[:600]}"
        for sign in (
            "WordPress database error",
            "Error establishing a database connection",
            "Fatal error",
            "critical error on this website",
        ):
            assert sign not in body, f"{path}: {text(body)[:1500]}"
        return body

    def rest(self, route, data=None, method=None, status=None, headers=None):
        """A call of the API that the block editor uses."""
        if self.nonce is None:
            self.nonce = self.open("/wp-admin/admin-ajax.php?action=rest-nonce")
        all_headers = {"X-WP-Nonce": self.nonce, "Content-Type": "application/json", **(headers or {})}
        body = data if isinstance(data, bytes) or data is None else json.dumps(data).encode()
        status = status or (201 if data is not None and method is None else 200)
        return json.loads(self.open("/index.php?rest_route=/wp/v2/" + route, body, all_headers, method, status))

    def login(self, user, password):
        self.open("/wp-login.php")
        page = self.open(
            "/wp-login.php",
            {
                "log": user,
                "pwd": password,
                "wp-submit": "Log In",
                "testcookie": "1",
                "redirect_to": SITE + "/wp-admin/",
            },
        )
        return "Log Out" in page


def text(body):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", body, flags=re.S)))


def hidden(body, form=None):
    """The hidden fields of a page's form."""
    if form:
        body = re.search(rf"<form[^>]*{form}.*?</form>", body, re.S).group(0)
    fields = {}
    for tag in re.findall(r"<input[^>]*type=[\"']hidden[\"'][^>]*>", body):
        name = re.search(r"name=[\"']([^\"']+)", tag)
        value = re.search(r"value=[\"']([^\"']*)", tag)
        if name:
            fields[name.group(1)] = html.unescape(value.group(1)) if value else ""
    return fields


def install():
    visitor = Browser()
    page = visitor.open("/wp-admin/setup-config.php?step=1&noapi=1")
    assert "database connection details" in page
    page = visitor.open(
        "/wp-admin/setup-config.php?step=2",
        {
            "dbname": os.environ["APPLICATION_DATABASE"],
            "uname": os.environ["APPLICATION_USER"],
            "pwd": os.environ["APPLICATION_PASSWORD"],
            "dbhost": f"{os.environ['RAUK_HOST']}:{os.environ['RAUK_PORT']}",
            "prefix": "wp_",
            "language": "",
            "submit": "Submit",
        },
    )
    assert "You’ve made it through this part" in text(page), text(page)
    # Errors go to the log, which is read at the end; nothing is asked of servers elsewhere.
    config = f"{FOLDER}/wp-config.php"
    lines = (
        open(config)
        .read()
        .replace(
            "define( 'WP_DEBUG', false );",
            "define( 'WP_DEBUG', true ); define( 'WP_DEBUG_LOG', true ); define( 'WP_DEBUG_DISPLAY', false );\n"
            "define( 'WP_HTTP_BLOCK_EXTERNAL', true ); define( 'WP_ACCESSIBLE_HOSTS', '127.0.0.1' ); define( 'WP_ALLOW_REPAIR', true );\n"
            "define( 'WP_ALLOW_MULTISITE', true ); define( 'DISABLE_WP_CRON', true );",
        )
    )
    assert "WP_DEBUG_LOG" in lines
    open(config, "w").write(lines)
    assert "Welcome to the famous five-minute WordPress installation process" in text(
        visitor.open("/wp-admin/install.php")
    )
    page = visitor.open(
        "/wp-admin/install.php?step=2",
        {
            "weblog_title": "Rauk's “own” blög 🎉",
            "user_name": "admin",
            "admin_password": "a long password 7!",
            "admin_password2": "a long password 7!",
            "pw_weak": "1",
            "admin_email": "admin@example.org",
            "blog_public": "0",
            "language": "",
            "Submit": "Install WordPress",
        },
    )
    assert "WordPress has been installed" in text(page), text(page)
    assert "already installed" in visitor.open("/wp-admin/install.php")


install()
admin, guest = Browser(), Browser()
assert not Browser().login("admin", "wrong")
assert admin.login("admin", "a long password 7!")
dashboard = text(admin.open("/wp-admin/"))
assert "1 Post" in dashboard and "1 Page" in dashboard and "1 Comment" in dashboard, dashboard[:2000]

# settings, with pretty links
page = admin.open("/wp-admin/options-general.php")
admin.open(
    "/wp-admin/options.php",
    {
        **hidden(page, 'action="options.php"'),
        "blogname": "Blög 🎉",
        "blogdescription": 'it\'s "so" <simple>',
        "siteurl": SITE,
        "home": SITE,
        "new_admin_email": "admin@example.org",
        "timezone_string": "Europe/Vienna",
        "date_format": "Y-m-d",
        "time_format": "H:i",
        "start_of_week": "1",
        "default_role": "subscriber",
    },
)
page = admin.open("/wp-admin/options-permalink.php")
admin.open(
    "/wp-admin/options-permalink.php",
    {
        **hidden(page, 'name="form"'),
        "selection": "/%year%/%monthnum%/%postname%/",
        "permalink_structure": "/%year%/%monthnum%/%postname%/",
    },
)
assert "Blög 🎉" in text(guest.open("/"))

# categories, tags, posts with revisions, a picture
news = admin.rest("categories", {"name": "News & more", "description": "what is new"})
sub = admin.rest("categories", {"name": "Local", "parent": news["id"]})
tags = [admin.rest("tags", {"name": name})["id"] for name in ("red", "größe", "emoji 🎉")]
assert admin.rest("tags", {"name": "red"}, status=400)["code"] == "term_exists"
raw = zlib.compress(b"".join(b"\0" + bytes([x * 5 % 256 for x in range(40 * 3)]) for _ in range(40)))
chunks = [(b"IHDR", bytes([0, 0, 0, 40, 0, 0, 0, 40, 8, 2, 0, 0, 0])), (b"IDAT", raw), (b"IEND", b"")]
picture = PNG + b"".join(len(d).to_bytes(4, "big") + t + d + zlib.crc32(t + d).to_bytes(4, "big") for t, d in chunks)
media = admin.rest(
    "media", picture, headers={"Content-Type": "image/png", "Content-Disposition": 'attachment; filename="dot.png"'}
)
assert media["media_details"]["width"] == 40, media
posts = [
    admin.rest(
        "posts",
        {
            "title": f"Post {n} 'quoted' \\ 100%",
            "content": f"<!-- wp:paragraph --><p>Words about subject{n}, ümläut, 日本語, 🎉.</p><!-- /wp:paragraph -->",
            "status": "publish",
            "categories": [news["id"] if n % 2 else sub["id"]],
            "tags": tags[: n % 4],
            "date": f"2024-0{1 + n % 9}-15T10:00:00",
            "featured_media": media["id"],
            "sticky": n == 3,
        },
    )
    for n in range(1, 26)
]
post = posts[6]
for n in range(3):
    admin.rest(
        f"posts/{post['id']}", {"content": f"changed {n} times, uncommonword", "title": "Post seven"}, status=200
    )
assert len(admin.rest(f"posts/{post['id']}/revisions")) == 3
draft = admin.rest("posts", {"title": "A draft", "content": "not yet", "status": "draft"})
admin.rest(f"posts/{draft['id']}/autosaves", {"content": "autosaved"}, status=200)
private = admin.rest("posts", {"title": "Private words", "content": "secretword", "status": "private"})
later = admin.rest(
    "posts", {"title": "Later", "content": "futureword", "status": "publish", "date": "2035-01-01T00:00:00"}
)
assert later["status"] == "future"
page_about = admin.rest("pages", {"title": "About", "content": "about us", "status": "publish", "menu_order": 3})
child = admin.rest("pages", {"title": "Team", "content": "the team", "status": "publish", "parent": page_about["id"]})

# what a visitor reads
front = guest.open("/")
assert "Post 25" in text(front) or "Post 8" in text(front)
assert "changed 2 times" in text(guest.open(urllib.parse.urlparse(posts[6]["link"]).path))
assert "the team" in text(guest.open("/about/team/"))
guest.open("/nothing-here/", status=404)
assert "A draft" not in front and "Private words" not in front


def titles(path, status=200):
    return re.findall(r"(Post (?:\d+|seven))", text(guest.open(path, status=status)))


assert "Post seven" in titles("/?s=uncommonword")
assert "Post 12" in titles("/?s=subject12+%C3%BCml%C3%A4ut")
assert "Post 5" in titles("/?s=UMLAUT+subject5"), "the collation folds accents"
assert titles("/?s=secretword") == [] and titles("/?s=futureword") == []
assert "Private words" in text(admin.open("/?s=secretword"))
assert (
    "Post 2" in titles("/category/news-more/local/")
    and "Post 4" in titles("/2024/05/")
    and "Post 3" in titles("/tag/gr%C3%B6se/")
)
assert "Post 1" in titles("/page/2/") or "Post 1" in titles("/page/3/")
assert len(re.findall("<item>", guest.open("/feed/"))) == 10
listed = json.loads(
    guest.open("/index.php?rest_route=/wp/v2/posts&search=subject1&per_page=50&orderby=title&order=asc")
)
assert {p["id"] for p in listed} >= {posts[0]["id"], posts[9]["id"]} and len(listed) == 11, len(listed)
listed = json.loads(
    guest.open(
        f"/index.php?rest_route=/wp/v2/posts&categories={news['id']}&tags_exclude={tags[1]}&after=2024-02-01T00:00:00&per_page=50"
    )
)
assert listed and all(news["id"] in p["categories"] and tags[1] not in p["tags"] for p in listed)
assert json.loads(guest.open("/index.php?rest_route=/wp/v2/search&search=Team"))[0]["title"] == "Team"

# comments: by a visitor, held for moderation, approved, answered
article = guest.open(f"/?p={posts[8]['id']}")
form = hidden(article, 'id="commentform"')
assert form["comment_post_ID"] == str(posts[8]["id"])
guest.open(
    "/wp-comments-post.php",
    {
        **form,
        "comment": "A firm “opinion” 🎉",
        "author": "Gwen",
        "email": "gwen@example.org",
        "url": "",
        "submit": "Post Comment",
    },
)
assert "opinion" not in Browser().open(f"/?p={posts[8]['id']}")
guest.open(
    "/wp-comments-post.php",
    {**form, "comment": "A firm “opinion” 🎉", "author": "Gwen", "email": "gwen@example.org", "url": ""},
    status=409,
)
queue = admin.open("/wp-admin/edit-comments.php?comment_status=moderated")
number = re.search(r"id=['\"]comment-(\d+)['\"]", queue).group(1)
admin.rest(f"comments/{number}", {"status": "approved"}, status=200)
assert "opinion" in Browser().open(f"/?p={posts[8]['id']}")
answer = admin.rest("comments", {"post": posts[8]["id"], "parent": int(number), "content": "Thanks"})
assert "Thanks" in Browser().open(f"/?p={posts[8]['id']}")
assert json.loads(guest.open(f"/index.php?rest_route=/wp/v2/comments&post={posts[8]['id']}"))[0]["id"] == answer["id"]
assert "Gwen" in text(admin.open("/wp-admin/edit-comments.php?s=opinion"))
admin.rest(f"comments/{number}", {"status": "spam"}, status=200)
assert "opinion" not in Browser().open(f"/?p={posts[8]['id']}")

# people and what they may
writer_id = admin.rest(
    "users",
    {
        "username": "writer",
        "email": "writer@example.org",
        "password": "writer password 9!",
        "roles": ["author"],
        "first_name": "Wil",
    },
)["id"]
writer = Browser()
assert writer.login("writer", "writer password 9!")
own = writer.rest("posts", {"title": "By the writer", "content": "own words", "status": "publish"})
assert writer.rest(f"posts/{posts[0]['id']}", {"title": "no"}, status=403)["code"] == "rest_cannot_edit"
assert "By the writer" in text(guest.open("/author/writer/"))
profile = writer.open("/wp-admin/profile.php")
writer.open(
    "/wp-admin/profile.php",
    {
        **hidden(profile, 'id="your-profile"'),
        "first_name": "Wilma",
        "last_name": "W",
        "nickname": "wilma",
        "display_name": "wilma",
        "email": "writer@example.org",
        "url": "",
        "description": "bio",
        "admin_color": "fresh",
    },
)
assert admin.rest(f"users/{writer_id}&context=edit")["first_name"] == "Wilma"

# the administration's lists and tools
for path, words in {
    "edit.php?s=subject1&post_status=publish": "Post 1",
    "edit.php?m=202405&cat=" + str(sub["id"]): "Post 4",
    "edit.php?orderby=comment_count&order=desc": "Post",
    "edit.php?post_type=page": "Team",
    "edit-tags.php?taxonomy=category&orderby=count": "News",
    "edit-tags.php?taxonomy=post_tag&s=red": "red",
    "upload.php?mode=list": "dot",
    "users.php?role=author": "writer",
    "users.php?s=wri&orderby=email": "writer",
    "edit-comments.php?comment_status=spam": "Gwen",
    "options-reading.php": "Reading",
    "options-writing.php": "Writing",
    "plugins.php": "Akismet",
    "themes.php": "Twenty",
    "tools.php": "Tools",
    "export.php": "Export",
    "site-health.php?tab=debug": "Database",
    "post-new.php": "Add",
    "media-new.php": "Upload",
    "revision.php?revision=" + str(admin.rest(f"posts/{post['id']}/revisions")[0]["id"]): "Revision",
    "privacy.php": "Privacy",
    "export-personal-data.php": "Personal",
    "site-editor.php": "Editor",
    "post.php?action=edit&post=" + str(post["id"]): "Post seven",
    "profile.php": "admin",
    "network.php": "Network",
}.items():
    body = admin.open("/wp-admin/" + path)
    assert words.lower() in text(body).lower() + body.lower(), f"{path}: {text(body)[:800]}"
health = text(admin.open("/wp-admin/site-health.php?tab=debug"))
assert re.search(r"Server version \d", health) and "utf8mb4" in health, health[-2000:]
exported = admin.open("/wp-admin/export.php?download=true&content=all")
assert exported.count("<item>") >= 30 and "uncommonword" in exported
assert (
    "repaired" in text(admin.open("/wp-admin/maint/repair.php?repair=2")).lower()
    or "okay" in text(admin.open("/wp-admin/maint/repair.php?repair=1")).lower()
)
assert "No Update Required" in text(admin.open("/wp-admin/upgrade.php"))
Browser().open("/wp-cron.php?doing_wp_cron")

# quick edits, bulk actions, trash and deletion
table = admin.open("/wp-admin/edit.php")
bulk = {
    "_wpnonce": re.search(r'id="_wpnonce" name="_wpnonce" value="(\w+)"', table).group(1),
    "action": "trash",
    "post_type": "post",
    "post[]": [posts[0]["id"], posts[1]["id"]],
}
admin.open("/wp-admin/edit.php?" + urllib.parse.urlencode(bulk, doseq=True))
assert admin.rest(f"posts/{posts[0]['id']}&context=edit")["status"] == "trash"
admin.rest(f"posts/{posts[0]['id']}", {"status": "publish"}, status=200)
assert admin.rest(f"posts/{posts[1]['id']}&force=true", method="DELETE")["deleted"] is True
admin.rest(f"posts/{posts[1]['id']}", status=404)
assert admin.rest(f"users/{writer_id}&force=true&reassign=1", method="DELETE")["deleted"] is True
assert admin.rest(f"posts/{own['id']}")["author"] == 1
assert admin.rest(f"categories/{sub['id']}&force=true", method="DELETE")["deleted"] is True
assert admin.rest(f"media/{media['id']}&force=true", method="DELETE")["deleted"] is True
assert admin.rest(f"categories/{news['id']}")["count"] == 13, admin.rest(f"categories/{news['id']}")

# the old interface for programs
call = """<?xml version="1.0"?><methodCall><methodName>wp.newPost</methodName><params><param><value><int>1</int></value></param>
<param><value><string>admin</string></value></param><param><value><string>a long password 7!</string></value></param><param><value><struct>
<member><name>post_title</name><value><string>By XML-RPC</string></value></member><member><name>post_status</name><value><string>publish</string></value></member>
</struct></value></param></params></methodCall>"""
assert "<fault>" not in guest.open("/xmlrpc.php", call.encode(), {"Content-Type": "text/xml"})
assert "By XML-RPC" in text(guest.open("/"))
log = f"{FOLDER}/wp-content/debug.log"
errors = [line for line in open(log)] if os.path.exists(log) else []
errors = [line for line in errors if "database error" in line or "mysqli" in line]
assert not errors, "".join(errors)
print("the blog works")
