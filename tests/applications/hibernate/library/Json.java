// JSON for the one shape that the library stores, so that no JSON library is needed: numbers,
// texts, lists and maps.
package library;

import org.hibernate.type.descriptor.WrapperOptions;
import org.hibernate.type.descriptor.java.JavaType;
import org.hibernate.type.format.FormatMapper;

import java.util.*;

public class Json implements FormatMapper {
    @Override
    @SuppressWarnings("unchecked")
    public <T> T fromString(CharSequence text, JavaType<T> type, WrapperOptions options) {
        return (T) new Reader(text.toString()).value();
    }

    @Override
    public <T> String toString(T value, JavaType<T> type, WrapperOptions options) {
        var out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            out.append('{');
            map.forEach(
                    (key, item) -> {
                        if (out.charAt(out.length() - 1) != '{') out.append(',');
                        write(key, out);
                        out.append(':');
                        write(item, out);
                    });
            out.append('}');
        } else if (value instanceof Collection<?> items) {
            out.append('[');
            for (Object item : items) {
                if (out.charAt(out.length() - 1) != '[') out.append(',');
                write(item, out);
            }
            out.append(']');
        } else if (value instanceof String text) {
            out.append('"').append(text.replace("\\", "\\\\").replace("\"", "\\\"")).append('"');
        } else {
            out.append(value);
        }
    }

    private static final class Reader {
        private final String text;
        private int at;

        Reader(String text) {
            this.text = text;
        }

        Object value() {
            space();
            char c = text.charAt(at);
            if (c == '{') {
                var map = new LinkedHashMap<String, Object>();
                for (at++, space(); text.charAt(at) != '}'; skip(',')) {
                    var key = (String) value();
                    skip(':');
                    map.put(key, value());
                    space();
                }
                at++;
                return map;
            }
            if (c == '[') {
                var list = new ArrayList<Object>();
                for (at++, space(); text.charAt(at) != ']'; skip(',')) {
                    list.add(value());
                    space();
                }
                at++;
                return list;
            }
            if (c == '"') {
                var out = new StringBuilder();
                for (at++; text.charAt(at) != '"'; at++) {
                    if (text.charAt(at) == '\\') at++;
                    out.append(text.charAt(at));
                }
                at++;
                return out.toString();
            }
            int start = at;
            while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
            return Double.valueOf(text.substring(start, at));
        }

        private void space() {
            while (at < text.length() && text.charAt(at) == ' ') at++;
        }

        private void skip(char wanted) {
            space();
            if (at < text.length() && text.charAt(at) == wanted) at++;
            space();
        }
    }
}
